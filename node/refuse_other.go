//go:build !linux

package node

import "errors"

// refuseNew isn't possible here: connections that Accept has not returned when the
// listener closes are lost.
func (l *listener) refuseNew() error { return errors.New("node: not supported on this system") }

// unaccepted isn't known here.
func (l *listener) unaccepted() int { return 0 }
