package console

import (
	"context"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
)

// operatorNodes is the list of nodes.
type operatorNodes struct {
	opened
	Nodes  []node
	Differ bool // not all run the same version
}

// node is a node as the page shows it, see lease.NodeState.
type node struct {
	ID, Version      string
	IsThis, IsSilent bool
	Lease, SeenAgo   time.Duration
	Behind           int64
}

// State is the key of the message of its state.
func (n node) State() string {
	switch {
	case n.IsSilent:
		return "operator.state.silent"
	case n.SeenAgo < 0:
		return "operator.state.new"
	}
	return "operator.state.alive"
}

func (h *console) operatorNodes(ctx context.Context, _ *ui.Call, o opened) (ui.View, error) {
	all, err := h.app.Lease.Nodes(ctx)
	body := operatorNodes{opened: o}
	for _, n := range all {
		body.Differ = body.Differ || n.Version != doorward.Version
		body.Nodes = append(body.Nodes, node{n.ID, n.Version, n.IsThis, n.IsSilent, n.Lease, n.SeenAgo, n.Behind})
	}
	return ui.View{Page: "operatornodes", Body: body}, err
}
