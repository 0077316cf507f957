package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

const oneDay = 24 * time.Hour

// parseDuration reads a duration in Go's form, which may begin with whole days: 90s, 24h, 7d, 1d12h. A day
// has 24 hours.
func parseDuration(text string) (time.Duration, error) {
	first, rest, found := strings.Cut(text, "d")
	if !found {
		return time.ParseDuration(text)
	}
	n, err := strconv.ParseUint(first, 10, 16)
	if err != nil {
		return 0, err
	}
	days := time.Duration(n) * oneDay
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || d > math.MaxInt64-days) {
		err = strconv.ErrRange
	}
	return days + d, err
}

// formatDuration writes 25h as 25h, not as 25h0m0s, and two days or more in days. parseDuration reads it.
func formatDuration(d time.Duration) string {
	if d > oneDay && d%oneDay == 0 {
		return fmt.Sprintf("%dd", d/oneDay)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// duration is the value of a flag that takes a duration with days.
type duration struct{ pflag.Value }

// Set implements pflag.Value.
func (v duration) Set(text string) error {
	d, err := parseDuration(text)
	if err != nil {
		return err
	}
	return v.Value.Set(d.String())
}
