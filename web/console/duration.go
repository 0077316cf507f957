package console

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// unitSuffix is the end of the name of the field with the unit of a duration. Without that
// field a duration is in minutes, as in the API.
const unitSuffix = ".unit"

// units are the units to choose from, in minutes.
var units = []int64{1, 60, 24 * 60}

// number is a setting that is a number, and the one in force.
type number struct {
	doorward.Setting
	Effective int64
}

// IsDuration reports whether the setting is shown with a unit to choose.
func (n number) IsDuration() bool { return n.Unit == doorward.InMinutes }

// duration is a setting that people read and write in minutes, hours or days.
type duration struct {
	number
	Value string
	Unit  int64
	Fault string
}

// Units returns the units to choose from that fit at least once into the greatest value.
func (d duration) Units() []int64 {
	return slices.DeleteFunc(slices.Clone(units), func(u int64) bool { return u > d.Max })
}

// Number is the number in the field, 0 for text that is none. Its unit is named in the form for it.
func (d duration) Number() int {
	n, _ := strconv.Atoi(d.Value)
	return n
}

// LimitUnit is the unit of Limit: that of the field, if the greatest value is whole in it.
func (d duration) LimitUnit() int64 {
	if d.Max%d.Unit == 0 {
		return d.Unit
	}
	_, unit := splitUnit(d.Max)
	return unit
}

// Limit is the greatest value, in LimitUnit.
func (d duration) Limit() int { return int(d.Max / d.LimitUnit()) }

// AsDuration is a number of minutes as a duration.
func (duration) AsDuration(minutes int64) time.Duration { return time.Duration(minutes) * time.Minute }

// durationOf returns the setting as the form has it, or else its effective value, in the
// greatest unit in which that is a whole number.
func durationOf(f ui.Frame, n number) duration {
	value, unit := splitUnit(n.Effective)
	d := duration{n, strconv.FormatInt(value, 10), unit, f.Faults[n.Name]}
	if f.Form.Has(n.Name) {
		d.Value, d.Unit = f.Form.Get(n.Name), 1
		if chosen, err := strconv.ParseInt(f.Form.Get(n.Name+unitSuffix), 10, 64); err == nil && slices.Contains(units, chosen) {
			d.Unit = chosen
		}
	}
	return d
}

// splitUnit returns minutes in the greatest unit in which they are a whole number.
func splitUnit(minutes int64) (value, unit int64) {
	for _, u := range slices.Backward(units) {
		if minutes > 0 && minutes%u == 0 {
			return minutes / u, u
		}
	}
	return minutes, 1
}

// numberIn returns the number in the field of a setting; durations in minutes.
func numberIn(c *ui.Call, name string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(c.Value(name)), 10, 32)
	unit := int64(1)
	if text := c.Value(name + unitSuffix); err == nil && text != "" {
		unit, err = strconv.ParseInt(text, 10, 32)
		if !slices.Contains(units, unit) {
			err = errors.New("no such unit")
		}
	}
	return n * unit, err
}

// typedMinutes returns a duration as sent, in minutes; text that is no number is returned
// unchanged.
func typedMinutes(c *ui.Call, name string) []string {
	n, err := numberIn(c, name)
	if err != nil {
		return nonEmpty(c.Value(name))
	}
	return []string{strconv.FormatInt(n, 10)}
}

// setMinutes puts a duration into its two fields.
func setMinutes(c *ui.Call, name string, to []string) {
	minutes, _ := strconv.ParseInt(strings.Join(to, ""), 10, 64) // a stored value is valid
	value, unit := splitUnit(minutes)
	c.Preset(name, strconv.FormatInt(value, 10))
	c.Preset(name+unitSuffix, strconv.FormatInt(unit, 10))
}
