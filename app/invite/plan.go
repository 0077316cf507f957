package invite

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/seal"
	"github.com/doorward/doorward/store"
)

// Limits of plans.
const (
	MaxPlanned = 1000 // people in a plan
	// PlanLife is how long a plan can be sent. What it has done is kept for 24 hours (see store.Tx.KeepAnswer),
	// so it is known for as long as the plan can be sent again.
	PlanLife = 12 * time.Hour
	// planChunk is how many people are invited in one transaction: half as many as the API invites, since a
	// request sends as many chunks as it has time for, and the tenant is locked for the time of one.
	planChunk = 50
)

// Plan is a list of people that a caller has seen and may send as it is. It is stored nowhere: the browser keeps
// it sealed, see SealPlan.
type Plan struct {
	ID       string    `json:"id"` // secret, from NewPlan: what was kept of the plan opens by it alone
	TenantID string    `json:"tenant"`
	UserID   string    `json:"user"`
	MadeAt   time.Time `json:"at"`
	Days     int64     `json:"days"`
	Locale   string    `json:"locale"`
	People   []Planned `json:"people"`
}

// Planned is one line of the list.
type Planned struct {
	Line  int    `json:"l"` // in the text that was read, from 1
	Email string `json:"e"`
	Name  string `json:"n,omitempty"`
	Role  string `json:"r"`
	Fault string `json:"f,omitempty"` // why nothing is sent, in the caller's words; empty: it is sent
}

// NewPlan returns a plan of the caller, for the days and in the language of the invitations.
func (i *Invitations) NewPlan(by doorward.Caller, days int64, locale string, people []Planned) Plan {
	return Plan{rand.Text(), by.TenantID, by.UserID(), i.db.Now(), days, locale, people}
}

// Offers are what the plan sends: the lines without a fault, in their order.
func (p Plan) Offers() (all []Offer) {
	for _, one := range p.People {
		if one.Fault == "" {
			all = append(all, Offer{Email: one.Email, Name: one.Name, Role: one.Role, Days: &p.Days, Locale: p.Locale})
		}
	}
	return all
}

// CheckPlan is CheckAll for the offers of a plan, in chunks, and with the quota of people for all of them together.
// The result is shorter than the offers if there was no time for the others. Errors: those of CheckAll.
func (i *Invitations) CheckPlan(ctx context.Context, by doorward.Caller, offers []Offer) ([]error, error) {
	errs, err := inChunks(ctx, offers, func(_ int, chunk []Offer) ([]error, error) { return i.CheckAll(ctx, by, chunk) })
	if err != nil {
		return nil, err
	}
	return errs, i.refuseBeyondQuota(ctx, by.TenantID, errs)
}

// refuseBeyondQuota sets the error of those offers without one for whom the quota of people has no room.
func (i *Invitations) refuseBeyondQuota(ctx context.Context, tenantID string, errs []error) error {
	return i.db.Snapshot(ctx, func(read store.Reader) error {
		t, err := read.Tenant(ctx, tenantID)
		if err != nil || t.Quotas.People == nil {
			return err
		}
		members, invited, err := read.CountPeople(ctx, tenantID, i.db.Now())
		people := members + invited
		for n := range errs {
			if errs[n] == nil {
				people++
				errs[n] = t.Quotas.Check(doorward.QuotaPeople, people)
			}
		}
		return err
	})
}

// SendPlan is SendAll for the offers of a plan: in chunks, each in one transaction that keeps what became of it,
// until all are sent or the request's time is nearly over. Sending a plan again, also on another node or after a
// crash, goes on where it ended: what was sent before is not sent twice, and has the result that it had.
// The result has an offer's outcome at its place; it is shorter than the offers if some are not sent yet. Errors
// say why the next chunk was not sent: those of SendAll, and idempotency_in_progress while another request sends it.
func (i *Invitations) SendPlan(ctx context.Context, by doorward.Caller, p Plan) ([]Sent, error) {
	return inChunks(ctx, p.Offers(), func(n int, chunk []Offer) ([]Sent, error) { return i.sendChunk(ctx, by, p, n, chunk) })
}

// inChunks calls do with one chunk after the other, until the time for a further one is lacking, by the longest
// that one has taken. It returns the joined results of the calls before the first error.
func inChunks[T any](ctx context.Context, offers []Offer, do func(n int, chunk []Offer) ([]T, error)) (all []T, err error) {
	var longest time.Duration
	deadline, hasDeadline := ctx.Deadline()
	for n := 0; len(offers) > 0; n++ {
		if hasDeadline && time.Until(deadline) < 2*longest {
			return all, nil
		}
		began := time.Now()
		chunk := offers[:min(len(offers), planChunk)]
		done, err := do(n, chunk)
		if err != nil {
			return all, err
		}
		all, offers = append(all, done...), offers[len(chunk):]
		longest = max(longest, time.Since(began))
	}
	return all, nil
}

// sendChunk sends the chunk of the number, or returns what was kept when it was sent.
func (i *Invitations) sendChunk(ctx context.Context, by doorward.Caller, p Plan, n int, chunk []Offer) ([]Sent, error) {
	call, key := p.call(by, n)
	place := seal.Place{Table: "idempotency", ID: hex.EncodeToString(call.ID), Column: "answer"}
	call.Answer = func(made any) ([]byte, error) {
		text, err := json.Marshal(kept(made.([]Sent)))
		return key.Seal(place, text), err
	}
	answer, err := i.writer.BeginCall(ctx, &call)
	switch {
	case err != nil:
		return nil, err
	case answer != nil:
		return reopen(key, place, answer)
	}
	by.Idempotent = &call
	sent, err := i.SendAll(ctx, by, chunk)
	if err != nil {
		i.writer.AbandonCall(ctx, &call)
	}
	return sent, err
}

// call returns the mark of the plan's chunk in the database, and the key that seals what becomes of it. Both come
// from the plan's id, which the database doesn't have.
func (p Plan) call(by doorward.Caller, n int) (doorward.IdempotentCall, seal.Key) {
	derive := func(purpose string) [sha256.Size]byte {
		bits, err := hkdf.Key(sha256.New, []byte(p.ID), nil, "doorward plan "+purpose+"\x00"+strconv.Itoa(n), sha256.Size)
		if err != nil {
			panic(err) // it fails only for too great a length
		}
		return [sha256.Size]byte(bits)
	}
	id, body := derive("id"), derive("body") // a plan is sealed, so its chunks never change
	return doorward.IdempotentCall{ID: id[:], TenantID: p.TenantID, UserID: by.UserID(), Body: body[:], Attempt: rand.Text()}, seal.KeyFrom(derive("seal"))
}

// outcome is what is kept of an offer that was sent: the invitation, or the parts of the refusal that say why.
type outcome struct {
	ID    string               `json:"id,omitempty"`
	Code  doorward.Code        `json:"code,omitempty"`
	Quota doorward.Quota       `json:"quota,omitempty"`
	Field *doorward.FieldError `json:"field,omitempty"`
}

func kept(sent []Sent) []outcome {
	all := make([]outcome, len(sent))
	for n, s := range sent {
		var refusal *doorward.Error
		if !errors.As(s.Err, &refusal) {
			all[n].ID = s.Invitation.ID
			continue
		}
		all[n].Code, all[n].Quota = refusal.Code, refusal.Quota
		if len(refusal.Fields) > 0 {
			all[n].Field = &refusal.Fields[0]
		}
	}
	return all
}

// reopen returns what kept was given, as far as it was kept. Errors: unavailable.
func reopen(key seal.Key, place seal.Place, answer []byte) ([]Sent, error) {
	var all []outcome
	text, err := key.Open(place, answer)
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	if err != nil {
		return nil, doorward.Unavailable(err)
	}
	sent := make([]Sent, len(all))
	for n, o := range all {
		if sent[n].Invitation.ID = o.ID; o.Code == "" {
			continue
		}
		refusal := &doorward.Error{Code: o.Code, Quota: o.Quota}
		if o.Field != nil {
			refusal.Fields = []doorward.FieldError{*o.Field}
		}
		sent[n].Err = refusal
	}
	return sent, nil
}

// SealPlan returns the plan as text that only OpenPlan reads: up to three times as long as its lines, in
// letters that forms don't encode. Errors: unavailable.
func (i *Invitations) SealPlan(ctx context.Context, p Plan) (string, error) {
	return i.plans.Seal(ctx, p.TenantID, p.UserID, p)
}

// OpenPlan returns the plan that SealPlan has sealed, and whether the caller may send it: it was sealed in this
// installation, for the same person in the same tenant, in the last PlanLife. Errors: unavailable.
func (i *Invitations) OpenPlan(ctx context.Context, by doorward.Caller, sealed string) (p Plan, ok bool, err error) {
	isOurs, err := i.plans.Open(ctx, by.TenantID, by.UserID(), sealed, &p)
	if err != nil || !isOurs {
		return Plan{}, false, err
	}
	return p, i.db.Now().Before(p.MadeAt.Add(PlanLife)), nil
}
