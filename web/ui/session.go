package ui

import (
	"slices"

	"github.com/doorward/doorward"
)

// SessionTable says where somebody is signed in, with a button to end each session. Its template is
// "sessionTable".
type SessionTable struct {
	Frame  Frame
	Label  string // id of the table's heading
	Action string // of the forms; they send the id as "session"
	List   string // query of the list to go back to, sent along; empty for none
	Rows   []SessionRow
}

// HasNew reports whether one of the sessions is from a new browser.
func (t SessionTable) HasNew() bool {
	return slices.ContainsFunc(t.Rows, func(r SessionRow) bool { return r.NewBrowser })
}

// SessionRow is one of the sessions.
type SessionRow struct {
	doorward.Session
	Tenant string // name; empty where all are of one
	IsThis bool   // the page is shown in it
	// Connection is the name of the connection that vouches for it; empty for none.
	Connection string
}
