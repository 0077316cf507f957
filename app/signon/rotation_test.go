package signon_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/signon"
)

// rotation is a provider that takes other certificates while people sign in on all nodes, and strangers post what others
// have signed.
type rotation struct {
	*site
	w     *world
	clock *apptest.MovedClock

	mu     sync.Mutex
	opened []string // what should have been refused
}

// serves has the metadata be these texts, one after the other; then the last one. A reading takes as long as the pause until
// the next may begin.
func (r *rotation) serves(texts ...string) {
	r.saml.mu.Lock()
	defer r.saml.mu.Unlock()
	r.saml.serve = func(rw http.ResponseWriter) {
		r.clock.Move(provider.AgainSoon)
		_, _ = rw.Write([]byte(texts[0]))
		if len(texts) > 1 {
			texts = texts[1:]
		}
	}
}

// signIns has many people sign in while the provider acts, and somebody who has the other keys posts by them.
func (r *rotation) signIns(what string, act func(), others ...int) {
	r.w.Helper()
	const people, each = 12, 3
	begun := make(chan struct{}, people)
	errs := apptest.Concurrently(people+1+len(others), func(i int) error {
		switch {
		case i == people:
			for range people { // each of them is under way
				<-begun
			}
			act()
			return nil
		case i > people:
			return r.forge(i, others[i-people-1])
		}
		var all error
		for n := range each {
			b := r.browser()
			b.node = i
			all = errors.Join(all, apptest.ErrorOf(b.signIn()))
			if n == 0 {
				begun <- struct{}{}
			}
		}
		return all
	})
	if err := errors.Join(errs...); err != nil {
		r.w.Errorf("%s: somebody was refused: %v", what, err)
	}
}

// forge posts a response by the i-th key, which has to be refused.
func (r *rotation) forge(node, i int) error {
	b := r.browser()
	b.node = node
	address, err := b.start(signon.Ask{})
	if err != nil {
		return err
	}
	if _, err = b.through(r.saml.forged(b, address, i)); apptest.Code(err) == doorward.CodeSignOnRefused {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.opened = append(r.opened, fmt.Sprintf("key %d on node %d: %v", i, node, err))
	return nil
}

// read reads the metadata for something else than a response, as the button does.
func (r *rotation) read() {
	r.w.Helper()
	r.w.NoError(apptest.ErrorOf(r.w.Node(0).Connections.Refresh(r.w.Context(), r.owner.Caller, r.conID)))
}

// TestRaceRotationsOfThreeNodes: within a minute a provider takes two other certificates, the first with both in the
// metadata, the second some seconds before those have it, while people sign in on three nodes, administrators read the
// metadata, and strangers post responses that others have signed. Nobody of the provider is refused; no stranger gets in, nor
// does who has the key of a certificate that was taken away by hand.
func TestRaceRotationsOfThreeNodes(t *testing.T) {
	t.Parallel()
	postgres := apptest.Engines[len(apptest.Engines)-1]
	if testing.Short() || postgres.Name != "postgres" {
		t.Skip("it needs PostgreSQL")
	}
	postgres.Nodes = 3
	clock := apptest.NewMovedClock()
	w, s := samlWorld(apptest.New(t, postgres, apptest.NoLimits, clock.Now))
	r := &rotation{site: s, w: w, clock: clock}
	const stranger = 3
	s.in(s.browser().signIn())

	r.signIns("both certificates", func() {
		r.read()
		r.serves(s.saml.naming(0, 1))
		s.saml.use(1)
	}, stranger)
	r.signIns("the first one goes", func() {
		r.serves(s.saml.naming(1))
		r.read()
	}, stranger)
	r.serves(s.saml.naming(0, 1)) // it is there again, but somebody has taken it away
	r.read()
	s.saml.use(1)
	keep := []string{s.fingerprint()}
	_, _, err := w.Node(0).Connections.Edit(w.Context(), s.owner.Caller, s.conID, connection.Change{Draft: connection.Draft{Certificates: &keep}})
	w.NoError(err)
	r.signIns("taken away by hand", func() {}, 0, 0)
	r.signIns("signs before the metadata have it", func() {
		r.read()
		late := s.saml.naming(0, 1)
		r.serves(late, late, s.saml.naming(0, 1, 2))
		s.saml.use(2)
	}, stranger, 0)
	r.signIns("the second one goes", func() {
		r.serves(s.saml.naming(2))
		r.read()
	}, 0)
	if len(r.opened) > 0 {
		t.Errorf("these weren't refused:\n%s", strings.Join(r.opened, "\n"))
	}
}
