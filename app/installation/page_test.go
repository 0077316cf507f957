package installation_test

import (
	"testing"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/apptest"
	"github.com/doorward/doorward/app/installation"
	"github.com/doorward/doorward/internal/fulltest"
	"github.com/doorward/doorward/store"
)

// TestOperatorPageOnce: of many who open one link, on several nodes, one gets the page. Link
// and page end by themselves, and a restore ends the page.
func TestOperatorPageOnce(t *testing.T) {
	apptest.OnEachClock(t, apptest.NoLimits, apptest.NewStoppedClock, func(f *apptest.Fixture, clock *apptest.StoppedClock) {
		at := func(i int) *installation.Installation { return f.Node(i).Installation }
		link := func() string {
			token, _, err := at(0).MakeLink(f.Context(), apptest.Operator)
			f.NoError(err)
			return token.Reveal()
		}
		shared := link()
		const callers = 16
		errs := apptest.Concurrently(callers, func(i int) error {
			return apptest.ErrorOf(at(i).OpenPage(f.Context(), apptest.Anonymous(0), shared))
		})
		f.WantCodes(errs, apptest.Codes{"": 1, doorward.CodeInvalidCode: callers - 1})

		late := link()
		clock.Move(10 * time.Minute)
		if code := apptest.Code(apptest.ErrorOf(at(1).OpenPage(f.Context(), apptest.Anonymous(1), late))); code != doorward.CodeInvalidCode {
			f.Errorf("a link of ten minutes ago answers %q", code)
		}
		// open opens a page, and returns a function that requests it and returns the code.
		open := func() func() doorward.Code {
			token, err := at(0).OpenPage(f.Context(), apptest.Anonymous(1), link())
			f.NoError(err)
			return func() doorward.Code {
				_, err := at(1).Page(f.Context(), apptest.Anonymous(1), token)
				return apptest.Code(err)
			}
		}
		page := open()
		clock.Move(29 * time.Minute)
		before := page()
		clock.Move(time.Minute)
		if after := page(); before != "" || after != doorward.CodeUnauthenticated {
			f.Errorf("a page answers %q before its end and %q after it", before, after)
		}
		page = open()
		_, err := at(0).Restored(f.Context(), apptest.Operator, installation.Keep{Sessions: true, Links: true, Keys: true})
		f.NoError(err)
		if code := page(); code != doorward.CodeUnauthenticated {
			f.Errorf("after a restore the page answers %q", code)
		}
	})
}

// TestPageActs: a page does to tenants what its link was made for, and nothing else. The event says by which page, and
// who has made its link. A page that has ended does nothing, whatever its request has read before.
func TestPageActs(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, owner := f.Tenant()
		at := func(i int) *installation.Installation { return f.Node(i).Installation }
		by := doorward.OperatorAtTerminal(doorward.Terminal{SystemUser: "root@db1", Reason: "ticket 4711"})
		open := func(acts ...string) installation.Page {
			link, _, err := at(0).MakeLink(f.Context(), by, acts...)
			f.NoError(err)
			token, err := at(1).OpenPage(f.Context(), apptest.Anonymous(1), link.Reveal())
			f.NoError(err)
			page, err := at(0).Page(f.Context(), apptest.Anonymous(1), token)
			f.NoError(err)
			return page
		}
		do := func(page installation.Page, action doorward.Action, name string) doorward.Code {
			_, _, err := f.Node(0).Tenants.Confirmed(f.Context(), page.By, action, acme.ID, name)
			return apptest.Code(err)
		}
		want := func(got, want doorward.Code) {
			f.Helper()
			if got != want {
				f.Errorf("the answer is %q, want %q", got, want)
			}
		}
		reads, freezes := open(), open("freeze", "freeze")
		want(do(reads, doorward.TenantFreeze, acme.Name), doorward.CodeForbidden)
		for _, action := range []doorward.Action{doorward.TenantThaw, doorward.TenantClose, doorward.TenantRestore, doorward.TenantQuota} {
			want(do(freezes, action, acme.Name), doorward.CodeForbidden)
		}
		want(apptest.Code(apptest.ErrorOf(f.Node(0).Tenants.RestoreFor(f.Context(), open("close").By, acme.ID))), doorward.CodeForbidden)
		want(do(freezes, doorward.TenantFreeze, "acme corporation"), doorward.CodeValidationFailed)
		_, err := f.Node(1).Sessions.Check(f.Context(), owner.Token)
		f.NoError(err)
		want(do(freezes, doorward.TenantFreeze, acme.Name), "")
		if _, err := f.Node(1).Sessions.Check(f.Context(), owner.Token); apptest.Code(err) != doorward.CodeUnauthenticated {
			f.Errorf("another node accepts a session of the frozen tenant: %v", err)
		}
		found, err := f.DB.Read().EventPage(f.Context(), acme.ID, store.EventFilter{SystemUser: "root@db1"}, doorward.Window{Limit: 10})
		f.NoError(err)
		if n := len(found.Items); n != 1 || found.Items[0].Action != doorward.TenantFreeze || found.Items[0].ActorID != freezes.By.ID || found.Items[0].Change(doorward.FieldOperatorReason).To != "ticket 4711" {
			f.Errorf("events by the links of root@db1 in the trail of the tenant: %+v", found.Items)
		}

		thaws := open("thaw")
		ended, err := at(1).EndPages(f.Context(), apptest.Operator)
		f.NoError(err)
		if ended != 4 {
			f.Errorf("%d pages ended, want 4", ended)
		}
		want(do(thaws, doorward.TenantThaw, acme.Name), doorward.CodeUnauthenticated)
		if got, err := f.DB.Read().Tenant(f.Context(), acme.ID); err != nil || got.Status != doorward.TenantFrozen {
			f.Errorf("the tenant is %s (%v)", got.Status, err)
		}
	})
}

// TestRacePageEndsBeforeItActs: after the answer that all pages have ended, none of them changes anything any more,
// also by a request that was under way.
func TestRacePageEndsBeforeItActs(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acme, _ := f.Tenant()
		at := f.Node(0).Installation
		for range fulltest.Of(8, 60) {
			link, _, err := at.MakeLink(f.Context(), apptest.Operator, "freeze")
			f.NoError(err)
			token, err := at.OpenPage(f.Context(), apptest.Anonymous(1), link.Reveal())
			f.NoError(err)
			page, err := at.Page(f.Context(), apptest.Anonymous(1), token)
			f.NoError(err)
			var ended doorward.TenantStatus // when all pages have ended
			errs := apptest.Concurrently(5, func(i int) error {
				if i > 0 {
					_, _, err := f.Node(i).Tenants.Confirmed(f.Context(), page.By, doorward.TenantFreeze, acme.ID, acme.Name)
					return err
				}
				_, err := f.Node(1).Installation.EndPages(f.Context(), apptest.Operator)
				found, _ := f.DB.Read().Tenant(f.Context(), acme.ID)
				ended = found.Status
				return err
			})
			f.NoError(errs[0])
			found, err := f.DB.Read().Tenant(f.Context(), acme.ID)
			f.NoError(err)
			if found.Status != ended {
				f.Fatalf("the tenant was %s when all pages had ended, and is %s", ended, found.Status)
			}
			if found.Status == doorward.TenantFrozen {
				_, err := f.Node(0).Tenants.Thaw(f.Context(), apptest.Operator, acme.ID)
				f.NoError(err)
			}
		}
	})
}

// TestRaceActsOfPages: of acts that several pages do at the same time on several nodes, each answer says whether it has
// changed the tenant, and the trail has exactly those. It is frozen afterwards if it was frozen once more than thawed, and
// is closed once.
func TestRaceActsOfPages(t *testing.T) {
	apptest.OnEach(t, func(f *apptest.Fixture) {
		acts := []doorward.Action{doorward.TenantFreeze, doorward.TenantThaw, doorward.TenantClose}
		for range fulltest.Of(3, 20) {
			acme, _ := f.Tenant()
			var pages []installation.Page
			for i := range 2 * len(acts) {
				link, _, err := f.Node(0).Installation.MakeLink(f.Context(), apptest.Operator, "freeze", "thaw", "close")
				f.NoError(err)
				token, err := f.Node(i).Installation.OpenPage(f.Context(), apptest.Anonymous(1), link.Reveal())
				f.NoError(err)
				page, err := f.Node(i).Installation.Page(f.Context(), apptest.Anonymous(1), token)
				f.NoError(err)
				pages = append(pages, page)
			}
			changed := make([]bool, len(pages))
			errs := apptest.Concurrently(len(pages), func(i int) (err error) {
				_, changed[i], err = f.Node(i).Tenants.Confirmed(f.Context(), pages[i].By, acts[i%len(acts)], acme.ID, acme.Name)
				return err
			})
			f.WantOnly(errs, "", doorward.CodeTenantClosing) // of a thaw of what is closed and not frozen
			done := map[doorward.Action]int{}
			for i, is := range changed {
				if is {
					done[acts[i%len(acts)]]++
				}
			}
			for _, act := range acts {
				found, err := f.DB.Read().EventPage(f.Context(), acme.ID, store.EventFilter{Action: act, Outcome: doorward.Done}, doorward.Window{Limit: 10})
				f.NoError(err)
				if len(found.Items) != done[act] {
					f.Errorf("%d answers say that %s has changed the tenant, and the trail has %d", done[act], act, len(found.Items))
				}
			}
			found, err := f.DB.Read().Tenant(f.Context(), acme.ID)
			f.NoError(err)
			isFrozen := done[doorward.TenantFreeze] > done[doorward.TenantThaw]
			if done[doorward.TenantClose] != 1 || found.ClosedAt == nil || (found.Status == doorward.TenantFrozen) != isFrozen {
				f.Errorf("after %v the tenant is %s", done, found.Status)
			}
		}
	})
}
