package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/secret"
	"github.com/doorward/doorward/store"
)

// The tenant whose directory writes, and the connection of that directory.
const (
	directoryTenant     = "tnt_7vkq2m5x3yh4n6rj7wd2c5tpae"
	directoryConnection = "con_7vkq2m5x3yh4n6rj7wd2c5tpae"
	directoryDomain     = "directory.example"
	directoryClients    = 4
)

// scim is a directory under measurement.
type scim struct {
	b      *bench
	p      *process
	key    string
	people []string // ids of Users, in the order in which they were made
	groups []string
	took   time.Duration // for making all of them
}

// directory measures a customer's directory: making people and groups, changing a large group, reading a full list, and what
// that does to checks.
func (b *bench) directory() error {
	people, groups := 10_000, 500
	if !b.long {
		people, groups = 1000, 50
	}
	dsn := "sqlite:" + filepath.Join(b.dir, "directory.db")
	if err := populate(dsn, 0, 10_000, cheapParams); err != nil {
		return err
	}
	d := scim{b: b, people: make([]string, people), groups: make([]string, groups)}
	if err := d.populate(dsn); err != nil {
		return err
	}
	p, err := b.doorward(dsn)
	if err != nil {
		return err
	}
	defer p.stop()
	d.p = p
	alone, beside, err := d.besideChecks(d.make)
	if err != nil {
		return err
	}
	b.row(fmt.Sprintf("directory: %d people and %d groups", people, groups), d.took.Round(100*time.Millisecond).String(), "", "", "")
	b.row("  p99 of checks beside that", beside.percentile(.99).String(), alone.percentile(.99).String(), ratio(beside.percentile(.99), alone.percentile(.99)), "")
	if err := d.change(); err != nil {
		return err
	}
	if err := d.read(); err != nil {
		return err
	}
	return d.editMappings()
}

// populate adds the tenant with its OWNER, who has just proved a password, the connection, its secret and the proved domain.
func (d *scim) populate(dsn string) error {
	ctx := context.Background()
	db, err := store.Open(ctx, dsn, time.Now)
	if err != nil {
		return err
	}
	defer db.Close()
	key := secret.NewKey("dwc_")
	d.key = key.Reveal()
	hash := key.Hash()
	_, err = db.Write(ctx, func(tx *store.Tx) error {
		owner := doorward.User{ID: "usr_7vkq2m5x3yh4n6rj7wd2c5tpae", TenantID: directoryTenant, Role: doorward.RoleOwner, Status: doorward.UserActive, CreatedAt: tx.Now}
		token := directoryOwner()
		digest := sha256.Sum256(token[:])
		domain := doorward.Domain{ID: doorward.NewID(doorward.PrefixDomain), TenantID: directoryTenant, Name: directoryDomain, Token: "t", CreatedAt: tx.Now}
		steps := []error{
			tx.InsertTenant(ctx, doorward.Tenant{ID: directoryTenant, Name: "Directory", Status: doorward.TenantActive, CreatedAt: tx.Now}),
			ignore(tx.InsertAccount(ctx, doorward.Account{ID: owner.ID, Email: "owner@" + directoryDomain, CreatedAt: tx.Now})),
			ignore(tx.InsertMembership(ctx, owner)),
			tx.InsertSession(ctx, doorward.Session{
				ID: doorward.NewID(doorward.PrefixSession), UserID: owner.ID, TenantID: directoryTenant, CreatedAt: tx.Now, LastSeenAt: tx.Now, IP: "127.0.0.1", UserAgent: "bench",
				Assurance: doorward.Assurance{Issuer: doorward.OwnIssuer, AAL: 1, AMR: []string{doorward.MethodPassword}, ProvedAt: tx.Now},
			}, digest[:]),
			tx.InsertConnection(ctx, doorward.Connection{
				ID: directoryConnection, TenantID: directoryTenant, Type: doorward.SCIMDirectory, Name: "Directory", Product: "okta", Status: doorward.ConnectionActive, CreatedAt: tx.Now,
				JIT: doorward.JITOff, JITRole: doorward.RoleUser,
			}),
			tx.InsertSCIMSecret(ctx, doorward.SCIMSecret{ID: doorward.NewID(""), ConnectionID: directoryConnection, Hint: key.Hint(), CreatedAt: tx.Now}, hash[:]),
			ignore(tx.InsertDomain(ctx, domain)),
			tx.VerifyDomain(ctx, domain.ID, tx.Now.Add(24*time.Hour)),
		}
		return errors.Join(steps...)
	})
	return err
}

// directoryOwner is the token of the OWNER's session.
func directoryOwner() [32]byte { return sha256.Sum256([]byte("bench owner")) }

func ignore(_ bool, err error) error { return err }

// besideChecks measures checks without work, and then while work runs.
func (d *scim) besideChecks(work func() error) (alone, beside result, err error) {
	requests := checkRequests(10_000, 10_000)
	for range 2 { // the first turn loads the sessions
		if alone, err = paced(d.p, 5*d.b.slice, requests); err != nil {
			return alone, beside, err
		}
	}
	var isOver atomic.Bool
	worked := make(chan error, 1)
	go func() { defer isOver.Store(true); worked <- work() }()
	for !isOver.Load() {
		r, err := paced(d.p, d.b.slice, requests)
		if err != nil {
			return alone, beside, err
		}
		beside.add(r)
	}
	return alone, beside, <-worked
}

// checksPerSecond is the rate of checks beside a directory: a machine with checks alone at their greatest rate has nothing
// left for a directory, and nothing to show but that.
const checksPerSecond = 500

// paced sends checks at checksPerSecond for a while, by one connection. A check that is late for its time counts from that time.
func paced(p *process, duration time.Duration, requests [][]byte) (r result, err error) {
	c, err := dial(p.address)
	if err != nil {
		return r, err
	}
	defer c.conn.Close()
	began := time.Now()
	for n := 0; ; n++ {
		due := began.Add(time.Duration(n) * time.Second / checksPerSecond)
		if due.Sub(began) >= duration {
			r.took = time.Since(began)
			return r, nil
		}
		time.Sleep(time.Until(due))
		if status, body, err := c.ask(requests[n%len(requests)]); err != nil || status != 200 {
			return r, fmt.Errorf("check: %d %s: %v", status, body, err)
		}
		r.latencies = append(r.latencies, time.Since(due))
		r.requests++
	}
}

func (d *scim) request(method, path string, body any) []byte {
	text := []byte{}
	if body != nil {
		text, _ = json.Marshal(body) // maps and texts alone
	}
	return fmt.Appendf(nil, "%s /scim/v2%s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/scim+json\r\nContent-Length: %d\r\n\r\n%s",
		method, path, d.key, len(text), text)
}

// all sends n requests by several connections, and returns the bodies of the answers.
func (d *scim) all(n, connections, want int, request func(i int) []byte) (bodies [][]byte, err error) {
	bodies = make([][]byte, n)
	var next atomic.Int64
	var running sync.WaitGroup
	errs := make([]error, connections)
	for w := range connections {
		running.Go(func() {
			c, err := dial(d.p.address)
			if err != nil {
				errs[w] = err
				return
			}
			defer c.conn.Close()
			for i := int(next.Add(1)) - 1; i < n && errs[w] == nil; i = int(next.Add(1)) - 1 {
				status, body, err := c.ask(request(i))
				if bodies[i] = body; err == nil && status != want {
					err = fmt.Errorf("status %d instead of %d: %.300s", status, want, body)
				}
				errs[w] = err
			}
		})
	}
	running.Wait()
	return bodies, errors.Join(errs...)
}

// timed is all with a row of the time and the CPU of each request.
func (d *scim) timed(name string, n, connections, want int, request func(i int) []byte) (bodies [][]byte, err error) {
	cpu, began := d.p.cpu(), time.Now()
	bodies, err = d.all(n, connections, want, request)
	took := time.Since(began)
	d.b.row(name, fmt.Sprintf("%.1f/s", float64(n)/took.Seconds()), "", "", ((d.p.cpu() - cpu) / time.Duration(n)).Round(10*time.Microsecond).String())
	return bodies, err
}

func idsIn(bodies [][]byte, into []string) error {
	for i, body := range bodies {
		var made struct{ ID string }
		if err := json.Unmarshal(body, &made); err != nil {
			return err
		}
		into[i] = made.ID
	}
	return nil
}

type object map[string]any

// make makes all people, and groups with 20 of them each; the first group has 3,000, the second all.
func (d *scim) make() error {
	began := time.Now()
	bodies, err := d.timed("  POST of a User", len(d.people), directoryClients, 201, func(i int) []byte {
		name := fmt.Sprintf("person%05d@%s", i, directoryDomain)
		return d.request("POST", "/Users", object{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:User"}, "userName": name, "externalId": fmt.Sprintf("00u%08d", i), "active": true,
			"name": object{"givenName": "Ada", "familyName": "Lovelace"}, "displayName": "Ada Lovelace", "emails": []object{{"value": name, "type": "work", "primary": true}},
		})
	})
	if err == nil {
		err = idsIn(bodies, d.people)
	}
	if err != nil {
		return err
	}
	bodies, err = d.timed("  POST of a group", len(d.groups), directoryClients, 201, func(i int) []byte {
		return d.request("POST", "/Groups", object{
			"schemas": []string{"urn:ietf:params:scim:schemas:core:2.0:Group"}, "displayName": fmt.Sprintf("Group %d", i), "externalId": fmt.Sprintf("00g%08d", i), "members": d.membersOf(i),
		})
	})
	d.took = time.Since(began)
	if err == nil {
		err = idsIn(bodies, d.groups)
	}
	return err
}

func (d *scim) membersOf(group int) (members []object) {
	n, from := 20, group*20
	switch group {
	case 0:
		n = d.large()
	case 1:
		n = len(d.people)
	}
	for i := range n {
		members = append(members, object{"value": d.people[(from+i)%len(d.people)]})
	}
	return members
}

// large is the number of people in the first group.
func (d *scim) large() int { return len(d.people) * 3 / 10 }

// change measures changes of one person, and of one place in a large group.
func (d *scim) change() error {
	patch := func(operation object) object {
		return object{"schemas": []string{"urn:ietf:params:scim:api:messages:2.0:PatchOp"}, "Operations": []object{operation}}
	}
	n := len(d.people) / 10
	if _, err := d.timed("PATCH of a User, a name", n, 1, 200, func(i int) []byte {
		return d.request("PATCH", "/Users/"+d.people[i], patch(object{"op": "replace", "path": "displayName", "value": "Ada King"}))
	}); err != nil {
		return err
	}
	_, err := d.timed(fmt.Sprintf("PATCH of one in %d members", d.large()), n, 1, 204, func(i int) []byte {
		op := []string{"remove", "add"}[i%2]
		return d.request("PATCH", "/Groups/"+d.groups[0], patch(object{"op": op, "path": "members", "value": []object{{"value": d.people[i/2]}}}))
	})
	return err
}

// read measures full lists.
func (d *scim) read() error {
	const page = 200
	pages := func(resource, query string, of int) func(i int) []byte {
		n := max(1, of/page)
		return func(i int) []byte {
			return d.request("GET", fmt.Sprintf("/%s?count=%d&startIndex=%d%s", resource, page, i%n*page+1, query), nil)
		}
	}
	for _, list := range []struct {
		name, resource, query string
		of                    int
	}{
		{"a page of 200 Users", "Users", "", len(d.people)},
		{"a page of 200 groups", "Groups", "", len(d.groups)},
		{"  without members", "Groups", "&excludedAttributes=members", len(d.groups)},
	} {
		if _, err := d.timed(list.name, 4*max(1, list.of/page), 1, 200, pages(list.resource, list.query, list.of)); err != nil {
			return err
		}
	}
	_, err := d.timed("finding a User by userName", len(d.people)/10, 1, 200, func(i int) []byte {
		return d.request("GET", "/Users?filter="+strings.ReplaceAll(fmt.Sprintf("userName eq %%22person%05d@%s%%22", i, directoryDomain), " ", "%20"), nil)
	})
	return err
}

// editMappings measures an edit of mappings that gives all people another role, beside checks.
func (d *scim) editMappings() error {
	token := directoryOwner()
	body := fmt.Appendf(nil, `{"mappings":[{"group":"Group 1","role":"ADMIN"}]}`)
	request := fmt.Appendf(nil, "PATCH /api/v2/sso/connections/%s HTTP/1.1\r\nHost: localhost\r\nCookie: JSESSIONID=%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		directoryConnection, base64.RawURLEncoding.EncodeToString(token[:]), len(body), body)
	alone, beside, err := d.besideChecks(func() error {
		bodies, err := d.timed(fmt.Sprintf("an edit of mappings, %d people", len(d.people)), 1, 1, 200, func(int) []byte { return request })
		if err == nil && !bytes.Contains(bodies[0], []byte("ADMIN")) {
			err = fmt.Errorf("the answer has no mapping: %s", bodies[0])
		}
		return err
	})
	if err == nil {
		d.b.row("  p99 of checks beside that", beside.percentile(.99).String(), alone.percentile(.99).String(), ratio(beside.percentile(.99), alone.percentile(.99)), "")
	}
	return err
}
