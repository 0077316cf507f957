//go:build !linux

package node

import "errors"

// refuseNew isn't possible here: connections that Accept has not returned when the
// listener closes are lost.
func (l *listener) shut() error { return errors.New("node: not on this system") }
