// Package acs takes the SAML responses that providers have browsers post (the assertion consumer service), and keeps what
// they say for the browser that began: a browser sends no cookie with a form that another site has made.
//
//	address, request, err := receiver.Begin(ctx, conID, pending, ask)      // where a sign-in begins
//	query, err := receiver.Receive(ctx, by, conID, form)                   // at acs: where the browser goes then
//	received, isOurs, err := receiver.Open(ctx, conID, query)              // there
//	accepted, err := receiver.Use(ctx, tx, conID, received)                // once
//
// Whose browser that is, the caller judges: Received.Request has to be the id of the request that the browser's cookie
// has.
//
// It guarantees:
//
//   - A response is judged before the browser goes on, by the certificates that the connection has then. By one that has
//     been taken away since, nothing is accepted: Accepted.SignedBy says which they were.
//   - Each assertion is accepted once over all nodes, whatever response it comes in, and what it says is used once, within
//     a minute.
//   - Neither provider nor browser can change what was judged. What was accepted lies in the database, sealed by a key that
//     isn't there but goes with the browser; a refusal lies sealed in the address, and writes nothing.
package acs

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/app/sealed"
	"github.com/doorward/doorward/internal/samlsp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/store"
)

const (
	// waitWithin is how long what was received waits for the browser.
	waitWithin = time.Minute
	// maxRefused is how many responses of a client address may be refused within limitWindow. They are counted apart from
	// callbacks: else a form could keep out who signs in by another connection.
	maxRefused  = 60
	limitWindow = time.Minute
	// clocksApart is how long an assertion is known beyond its end, for nodes whose clocks differ.
	clocksApart = time.Minute
)

// Receiver is the feature. Make it with New. It is safe for use by several goroutines.
type Receiver struct {
	writer    *access.Writer
	db        *store.DB
	providers *provider.Client
	texts     *sealed.Texts
	judging   *judging
}

// New returns the feature. texts seals what browsers carry.
func New(writer *access.Writer, db *store.DB, providers *provider.Client, texts *sealed.Texts) *Receiver {
	return &Receiver{writer: writer, db: db, providers: providers, texts: texts, judging: newJudging()}
}

// Received is what a response has come to, as the browser's address carries it.
type Received struct {
	At time.Time
	// State is the RelayState of the form; empty: it has none, or several.
	State string `json:",omitempty"`
	// Request is the id of the request that the response answers, made here for this connection; empty: the response was
	// refused before that was known.
	Request string `json:",omitempty"`
	// Fault is why the response was refused, with what it says as far as that is authentic, for a test to show; nil: it
	// was accepted.
	Fault  *answer.Fault   `json:",omitempty"`
	Said   answer.Asserted `json:",omitzero"`
	Waits  []byte          `json:",omitempty"` // the hash of the assertion that waits
	Secret []byte          `json:",omitempty"` // opens what it says
}

// Accepted is what an assertion says.
type Accepted struct {
	By       doorward.ConnectionParameters // by which it was judged
	Pending  bool                          // those were not in force
	Asserted answer.Asserted
	SignedBy []string // fingerprints of certificates
}

// queries of the address to which the browser goes.
const (
	receivedQuery    = "received"
	unsolicitedQuery = "unsolicited"
)

// IsAnswer reports whether the query is one of Receive's, with an answer to a request.
func IsAnswer(query url.Values) bool { return query.Has(receivedQuery) }

// IsUnsolicited reports whether the query is Receive's for a response that answers no request. Anybody can write it.
func IsUnsolicited(query url.Values) bool { return query.Has(unsolicitedQuery) }

// Begin begins a sign-in, or a test of what is pending, and returns the provider's address, and the id of the request.
// Errors: those of provider.Client.ReadySAML.
func (r *Receiver) Begin(ctx context.Context, conID string, pending bool, ask samlsp.Ask) (address, request string, err error) {
	config, _, err := r.providers.ReadySAML(ctx, conID, pending)
	if err != nil {
		return "", "", err
	}
	ask.Trial = pending
	address, request, err = samlsp.Start(config, ask, r.db.Now())
	if err != nil {
		return "", "", doorward.Unavailable(err)
	}
	return address, request, nil
}

func counters(by doorward.Caller) []access.Counter {
	return access.ClientCounters("acs", by, maxRefused, limitWindow)
}

// Receive judges the form of a response, and returns the query of the callback to which the browser goes. A refused
// response counts for the client address; one that answers no request isn't looked at. Errors: too_many_attempts;
// not_found for what is no SAML connection with metadata; master_key_missing, unavailable.
func (r *Receiver) Receive(ctx context.Context, by doorward.Caller, conID string, form url.Values) (url.Values, error) {
	if err := access.CheckCounters(ctx, r.db, counters(by)); err != nil {
		return nil, err
	}
	config, _, err := r.providers.ReadySAML(ctx, conID, false)
	if doorward.HasCode(err, doorward.CodeValidationFailed) {
		err = doorward.Fail(doorward.CodeNotFound, "")
	}
	if err != nil {
		return nil, err
	}
	var response samlsp.Response
	err = r.judging.do(ctx, func() error {
		response, err = samlsp.Read(config, form, r.db.Now())
		return err
	})
	if errors.Is(err, samlsp.ErrUnsolicited) {
		return url.Values{unsolicitedQuery: {"true"}}, nil
	}
	received := Received{At: r.db.Now(), State: stateIn(form), Request: response.RequestID}
	if err == nil {
		err = r.accept(ctx, by, conID, response, &received)
	}
	if received.Fault, err = faultIn(err); err != nil {
		return nil, err
	}
	if f := received.Fault; f != nil && !f.Unavailable {
		if err := r.writer.CountWithin(ctx, counters(by)); err != nil {
			return nil, err
		}
	}
	text, err := r.texts.Seal(ctx, conID, receivedQuery, received)
	return url.Values{receivedQuery: {text}}, err
}

// stateIn returns the RelayState, which is the browser's if it is short enough.
func stateIn(form url.Values) string {
	if states := form["RelayState"]; len(states) == 1 && len(states[0]) <= samlsp.RelayStateMax {
		return states[0]
	}
	return ""
}

// faultIn returns the fault in an error, or the error if it is something else.
func faultIn(err error) (*answer.Fault, error) {
	if f, is := errors.AsType[*fault.Fault](err); is {
		return answer.FaultOfSAML(f), nil
	}
	if f, is := errors.AsType[*answer.Fault](err); is {
		return f, nil
	}
	return nil, err
}

// Open returns what the query carries, and reports whether Receive has sent it for the connection within a minute.
// Errors: unavailable.
func (r *Receiver) Open(ctx context.Context, conID string, query url.Values) (received Received, isOurs bool, err error) {
	isOurs, err = r.texts.Open(ctx, conID, receivedQuery, query.Get(receivedQuery), &received)
	age := r.db.Now().Sub(received.At)
	return received, isOurs && age < waitWithin && age > -clocksApart, err
}
