package ui

import (
	"fmt"
	"time"

	"github.com/doorward/doorward"
)

// What the console and the pages of set-up links both show of a connection's directory. The templates are in
// html/signon.html.

// DirectoryGuide says what to do in the console of a directory's provider. The template "directoryGuide" shows it.
type DirectoryGuide struct {
	Product doorward.Product
	URL     string // where directories write
}

// ProductName is the name of the provider's product; empty for another one.
func (g DirectoryGuide) ProductName() string { return ProductName(g.Product) }

// Steps are the keys of the steps, in their order. A product that brings no directory of its own has those of any other.
func (g DirectoryGuide) Steps() []string {
	if steps := directorySteps(g.Product); len(steps) > 0 {
		return steps
	}
	return directorySteps(doorward.OtherProduct)
}

func directorySteps(p doorward.Product) (keys []string) {
	for n := 1; ; n++ {
		key := fmt.Sprintf("scim.guide.%s.%d", p, n)
		if !hasMessage(key) {
			return keys
		}
		keys = append(keys, key)
	}
}

// DirectoryState is what a connection's directory has last asked for. The template "directoryState" shows it.
type DirectoryState struct {
	AskedAt *time.Time // nil: it never has, as far as secrets that are still there and the protocol know
	Last    *Attempt   // the newest entry of its requests in the protocol; nil: none
}

// NewDirectoryState returns the state of the connection's directory. last is the newest entry of its requests, with a
// Count of 0 for none; maker is the address of who made the set-up link by which it is shown; empty in the console.
func NewDirectoryState(of doorward.Connection, secrets []doorward.SCIMSecret, last doorward.Attempt, maker string) DirectoryState {
	s := DirectoryState{AskedAt: LastAsked(secrets)}
	if last.Count > 0 {
		s.Last = &Attempt{Attempt: last, Product: of.Product, Maker: maker}
		if s.AskedAt == nil || last.At.After(*s.AskedAt) { // the use of a secret is written later
			s.AskedAt = &last.At
		}
	}
	return s
}

// LastAsked is when a secret of the directory was last used; nil: never.
func LastAsked(secrets []doorward.SCIMSecret) (last *time.Time) {
	for _, s := range secrets {
		if s.LastUsedAt != nil && (last == nil || s.LastUsedAt.After(*last)) {
			last = s.LastUsedAt
		}
	}
	return last
}

// SecretDays are the lives of secrets that a form offers, in days; 0: without an end.
var SecretDays = []int{365, 180, 90, 730, 0}

// ChosenSecretDays returns the life that the form has chosen. What is none of the choices is refused by
// directory.Directories.AddSecret.
func ChosenSecretDays(c *Call) *int64 {
	var days int64
	if _, err := fmt.Sscan(c.Value("days"), &days); err != nil {
		days = -1
	}
	if days == 0 {
		return nil
	}
	return &days
}
