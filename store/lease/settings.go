package lease

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward/store"
)

// Setting is a setting of a node that should be the same on all nodes: a difference is reported.
type Setting struct {
	Name, Value string
	// Strict: a node with another value doesn't start beside the others. It would end sessions
	// that are valid for them, or shorten a time that they have promised.
	Strict bool
}

// Difference is a setting for which another living node has another value.
type Difference struct {
	Setting    Setting // as this node has it
	OtherValue string
	Node       string // id of a node with OtherValue
}

// DiffersError is the reason why a node doesn't start.
type DiffersError struct{ Differences []Difference }

// Error names every setting with both values.
func (e *DiffersError) Error() string {
	var all []string
	for _, d := range e.Differences {
		all = append(all, fmt.Sprintf("%s is %s here and %s on the running node %s", d.Setting.Name, d.Setting.Value, d.OtherValue, d.Node))
	}
	return strings.Join(all, "; ")
}

// Publish sets the settings for other nodes to compare with theirs. With force the node
// starts even if a strict one differs, to change such a setting node by node. Call it
// before Join.
func (l *Lease) Publish(settings []Setting, force bool) { l.settings, l.force = settings, force }

// Update publishes another value of one setting, which has changed while the node runs.
// Before this process is registered it is published with the others. The error is
// unavailable; call it again.
func (l *Lease) Update(ctx context.Context, name, value string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.IndexFunc(l.settings, func(s Setting) bool { return s.Name == name })
	if i < 0 || l.settings[i].Value == value {
		return nil
	}
	changed := slices.Clone(l.settings)
	changed[i].Value = value
	if !l.registered {
		l.settings = changed
		return nil
	}
	_, err := l.db.Write(ctx, func(tx *store.Tx) error { return setSettings(ctx, tx, l.id, encodeSettings(changed)) })
	if err == nil {
		l.settings = changed
	}
	return err
}

// PublishedValues returns the values that the registered nodes have published of a setting.
// The row of a killed node stays for three leases. The error is unavailable.
func PublishedValues(ctx context.Context, db *store.DB, name string) (values []string, err error) {
	nodes, err := readNodes(ctx, db.Read())
	for _, n := range nodes {
		for line := range strings.Lines(n.settings) {
			if value, found := strings.CutPrefix(strings.TrimSuffix(line, "\n"), name+"="); found {
				values = append(values, value)
			}
		}
	}
	return values, err
}

// Differences returns the settings for which living nodes had another value at this
// node's last read, which happens every lease.
func (l *Lease) Differences() []Difference {
	if d := l.differences.Load(); d != nil {
		return *d
	}
	return nil
}

// Differences compares settings with those of the registered nodes, for a process that
// isn't one. The row of a killed node stays for three leases. The error is unavailable.
func Differences(ctx context.Context, db *store.DB, own []Setting) (all []Difference, err error) {
	nodes, err := readNodes(ctx, db.Read())
	for _, n := range nodes {
		all = append(all, n.differences(own)...)
	}
	return all, err
}

// encodeSettings stores one setting per line, "name=value". The value is everything
// after the first equals sign.
func encodeSettings(settings []Setting) string {
	var b strings.Builder
	for _, s := range settings {
		fmt.Fprintf(&b, "%s=%s\n", s.Name, strings.ReplaceAll(s.Value, "\n", " "))
	}
	return b.String()
}

// differences compares settings with those that node n has published. It skips names that only
// one of the two nodes knows: they have different versions.
func (n node) differences(own []Setting) (all []Difference) {
	for line := range strings.Lines(n.settings) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		i := slices.IndexFunc(own, func(s Setting) bool { return s.Name == name })
		if i >= 0 && own[i].Value != value {
			all = append(all, Difference{own[i], value, n.id})
		}
	}
	return all
}

// strictDifferences returns the differences that prevent this node from starting beside n.
func (l *Lease) strictDifferences(n node) []Difference {
	if l.force {
		return nil
	}
	return slices.DeleteFunc(n.differences(l.settings), func(d Difference) bool { return !d.Setting.Strict })
}

// compareSettings records the settings for which other nodes have another value.
func (l *Lease) compareSettings(nodes []node) {
	var all []Difference
	for _, n := range nodes {
		if n.id != l.id {
			all = append(all, n.differences(l.settings)...)
		}
	}
	l.noteSettings(all)
	l.differences.Store(&all)
}
