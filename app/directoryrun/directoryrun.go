// Package directoryrun shows what a customer's directory has done, run by run, and takes a run back. A run are the writes of
// a connection without a pause; package directory records it.
//
//	run.go      lists
package directoryrun

import (
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/store"
)

// Runs is the feature. Make it with New.
type Runs struct {
	writer *access.Writer
	db     *store.DB
}

// New returns the feature.
func New(writer *access.Writer, db *store.DB) *Runs {
	return &Runs{writer: writer, db: db}
}
