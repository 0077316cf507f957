package directoryrun_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/internal/scim"
)

// random is a tenant in which a directory, another one and an OWNER write at random.
type random struct {
	*fixture
	other   *fixture
	rand    *rand.Rand
	ids     []string // Users that there were before the run
	address map[string]string
	in      map[string]bool // the group of ADMINs
	group   string
	isRunOn bool
	touched map[string]string // by whom else than the run, since it began
}

func newRandom(base *apptest.Fixture, seed uint64) *random {
	f := newFixture(base)
	r := &random{fixture: f, other: f.second(), rand: rand.New(rand.NewPCG(seed, 1)), address: map[string]string{}, in: map[string]bool{}, touched: map[string]string{}}
	r.group = f.group("admins")
	for i := range 9 {
		address := fmt.Sprintf("p%d@acme.example", i)
		if i > 5 {
			address = fmt.Sprintf("p%d@elsewhere.example", i)
		}
		id := f.make(address)
		r.ids, r.address[id] = append(r.ids, id), address
	}
	return r
}

// seen is what an undo brings back of a person.
type seen struct {
	Role    doorward.Role
	Floor   doorward.Role // what a hand has given
	Reasons string
	State   string
	Pending int
	In      bool
}

func (r *random) see(id string) seen {
	r.Helper()
	s := seen{Pending: r.pending(r.address[id])}
	if m, err := r.member(id); err == nil {
		s.Role, s.Reasons = m.Role, fmt.Sprint(slices.Sorted(slices.Values(m.Suspensions())))
		s.Floor, _ = r.DB.Read().RoleFloor(r.Context(), m.TenantID, m.ID) // not found: none
	}
	u, err := r.Node(0).Directories.User(r.Context(), r.by(0), id)
	if err == nil {
		s.State, s.In = u.State, len(u.Groups) > 0
	}
	return s
}

func (s seen) isLetIn() bool { return s.Role != "" && s.Reasons == "[]" || s.Pending > 0 }

// byDirectory is a write of the directory to the person, which may be refused.
func (r *random) byDirectory(id string) {
	r.Helper()
	switch r.rand.IntN(6) {
	case 0:
		_ = r.Node(0).Directories.Remove(r.Context(), r.by(0), id)
		delete(r.in, id)
	case 1, 2:
		_ = r.setActive(id, r.rand.IntN(3) == 0)
	case 3, 4:
		if r.in[id] = !r.in[id]; !r.in[id] {
			delete(r.in, id)
		}
		said := scim.Group{DisplayName: "admins", ExternalID: "admins", Members: slices.Sorted(maps.Keys(r.in))}
		if _, err := r.Node(0).Directories.ReplaceGroup(r.Context(), r.by(0), r.group, said); err != nil {
			delete(r.in, id)
		}
	default:
		if u, err := r.Node(0).Directories.User(r.Context(), r.by(0), id); err == nil {
			u.DisplayName = fmt.Sprint("Name ", r.rand.IntN(1000))
			_, _ = r.Node(0).Directories.Replace(r.Context(), r.by(0), id, u.User)
		}
	}
}

// byHand is a decision of somebody else.
func (r *random) byHand(id string) {
	r.Helper()
	before := r.see(id)
	what := r.decide(id)
	if after := r.see(id); r.isRunOn && after != before {
		r.touched[id] = what
	}
}

func (r *random) decide(id string) (what string) {
	role := []doorward.Role{doorward.RoleViewer, doorward.RoleUser, doorward.RoleAdmin}[r.rand.IntN(3)]
	off, on := doorward.UserSuspended, doorward.UserActive
	switch r.rand.IntN(6) {
	case 0:
		_ = r.hand(r.owner, id, user.Edit{Status: &off})
		return "suspended"
	case 1:
		_ = r.hand(r.owner, id, user.Edit{Status: &on, Override: true})
		return "reactivated"
	case 2:
		_ = r.hand(r.owner, id, user.Edit{Role: &role})
		return "role " + string(role)
	case 3:
		if inv, err := r.DB.Read().PendingInvitation(r.Context(), r.owner.TenantID, r.address[id]); err == nil {
			_ = r.Node(0).Invitations.Revoke(r.Context(), r.owner.Caller, inv.ID)
		}
		return "revoked"
	case 4:
		_ = r.other.setActive(id, false)
		return "suspended by another directory"
	}
	if m, err := r.member(id); err == nil && r.rand.IntN(3) == 0 {
		_, _ = r.Node(0).Users.Remove(r.Context(), r.owner.Caller, m, user.Handover{}, nil)
		delete(r.in, id)
	}
	return "removed"
}

func (r *random) each(odds int, do func(id string)) {
	for _, id := range r.ids {
		if r.rand.IntN(odds) == 0 {
			do(id)
		}
	}
}

// Runs and their undos beside decisions of others, at random: who was changed by nobody else is as before the run, and nobody
// has a role, or is let in, as they weren't before the run nor before the undo.
func TestUndoAtRandom(t *testing.T) {
	ranks := map[doorward.Role]int{"": 0, doorward.RoleViewer: 1, doorward.RoleUser: 2, doorward.RoleAdmin: 3}
	for seed := range uint64(apptest.Rounds(8, 100)) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			apptest.OnSQLite(t, func(base *apptest.Fixture) {
				r := newRandom(base, seed)
				r.each(3, r.byDirectory)
				r.each(3, r.byHand)
				r.pause()
				was := map[string]seen{}
				for _, id := range r.ids {
					was[id] = r.see(id)
				}
				first := r.last()
				r.isRunOn = true
				r.each(2, r.byDirectory)
				r.each(6, r.byHand)
				r.each(3, r.byDirectory)
				run := r.last()
				if run.ID == first.ID {
					return
				}
				r.each(4, r.byHand)
				left := map[string]seen{}
				for _, id := range r.ids {
					left[id] = r.see(id)
				}
				run = r.undo(run)
				for _, id := range r.ids {
					is := r.see(id)
					if by := r.touched[id]; by == "" && is != was[id] {
						r.Errorf("seed %d: %s was %+v, is %+v by the undo of %+v, which leaves them as %q", seed, r.address[id], was[id], is, left[id], r.why(run, id))
					}
					if ranks[is.Role] > max(ranks[was[id].Role], ranks[left[id].Role]) || is.isLetIn() && !was[id].isLetIn() && !left[id].isLetIn() {
						r.Errorf("seed %d: %s was %+v, then %+v by %s, and is raised to %+v", seed, r.address[id], was[id], left[id], r.touched[id], is)
					}
				}
			})
		})
	}
}
