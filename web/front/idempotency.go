package front

import (
	"bytes"
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/seal"
)

// IdempotencyKey is the header that names a request which the client may repeat, and
// IdempotencyReplayed marks an answer that was given before.
const (
	IdempotencyKey      = "Idempotency-Key"
	IdempotencyReplayed = "Idempotency-Replayed"
)

// MaxIdempotencyKey is the longest Idempotency-Key, in characters.
const MaxIdempotencyKey = 128

// Create returns the endpoint of a request that makes something. act calls the feature,
// which passes what it made to access.Tx.KeepAnswer; view turns that into the answer's
// body. With an Idempotency-Key the answer is kept for 24 hours, and the same request gets
// it again; view then runs in the feature's transaction, possibly more than once.
func Create[In, Made, Out any](status int, act func(context.Context, *Call, In) (Made, error), view func(*Call, Made) Out) Endpoint {
	e := Endpoint{Status: status, In: bodyType[In](), Out: bodyType[Out](), Creates: true}
	e.serve = func(ctx context.Context, c *Call) error {
		in, body, err := decode[In](c)
		if err != nil {
			return err
		}
		call, err := c.newIdempotentCall(body)
		switch {
		case err != nil:
			return err
		case call == nil:
			made, err := act(ctx, c, in)
			if err == nil {
				e.answer(c, view(c, made))
			}
			return err
		}
		call.Answer = func(made any) ([]byte, error) { return call.seal(view(c, made.(Made))) }
		return c.once(ctx, e.Status, call, func() error { _, err := act(ctx, c, in); return err })
	}
	return e
}

// once replays the kept answer. If there is none, it acts, and sends the answer that the
// feature has kept.
func (c *Call) once(ctx context.Context, status int, call *idempotentCall, act func() error) error {
	access := c.site.App.Access
	kept, err := access.BeginCall(ctx, &call.IdempotentCall)
	if err != nil {
		return err
	}
	if kept != nil {
		return c.replay(status, call, kept)
	}
	c.Caller.Idempotent = &call.IdempotentCall
	if err := act(); err != nil {
		access.AbandonCall(ctx, &call.IdempotentCall)
		return err
	}
	if call.text == nil {
		return errNotKept
	}
	c.site.send(c.W, status, "application/json", call.text)
	return nil
}

// errNotKept is a defect: a feature behind Create has not called access.Tx.KeepAnswer.
var errNotKept = errors.New("front: the answer to a request with an Idempotency-Key was not kept")

func (c *Call) replay(status int, call *idempotentCall, kept []byte) error {
	opened, err := call.key.Open(call.place(), kept)
	if err != nil {
		return doorward.Unavailable(err)
	}
	text, neededProof := bytes.CutPrefix(opened, afterProof)
	if neededProof {
		if err := c.site.App.Access.NeedProof(c.Caller); err != nil {
			return err
		}
	}
	infoOf(c.R).replayed = true
	c.W.Header().Set(IdempotencyReplayed, "true")
	c.site.send(c.W, status, "application/json", text)
	return nil
}

// idempotentCall is an attempt at a request with an Idempotency-Key.
type idempotentCall struct {
	doorward.IdempotentCall
	key  seal.Key
	text []byte // body of the answer, not sealed; nil until seal has run
}

// newIdempotentCall returns nil for a request without an Idempotency-Key. The id and the keys of
// the body's hash and of the stored answer are derived from the credential and the
// Idempotency-Key, so the database alone reveals no answer. The tenant goes into the derivation,
// too, because a service key may act in several tenants.
func (c *Call) newIdempotentCall(body []byte) (*idempotentCall, error) {
	key, err := idempotencyKey(c.R.Header)
	if err != nil || key == "" {
		return nil, err
	}
	credential, scope := c.site.credential(c.R), c.Caller.TenantID+"\x00"+c.R.URL.Path
	derive := func(purpose string) (bits [sha256.Size]byte) {
		derived, err := hkdf.Key(sha256.New, []byte(credential), []byte(key), "doorward idempotency "+purpose+"\x00"+scope, len(bits))
		if err != nil {
			panic(err) // it fails only for too great a length
		}
		return [sha256.Size]byte(derived)
	}
	id, bodyKey := derive("id"), derive("body")
	mac := hmac.New(sha256.New, bodyKey[:])
	mac.Write(body)
	call := doorward.IdempotentCall{ID: id[:], TenantID: c.Caller.TenantID, Body: mac.Sum(nil), Attempt: rand.Text()}
	if c.Caller.Kind == doorward.ByUser {
		call.UserID = c.Caller.ID
	}
	return &idempotentCall{IdempotentCall: call, key: seal.KeyFrom(derive("seal"))}, nil
}

// idempotencyKey returns the key of the request, empty without one. Errors:
// invalid_idempotency_key.
func idempotencyKey(h http.Header) (string, error) {
	all := h.Values(IdempotencyKey)
	if len(all) == 0 {
		return "", nil
	}
	invisible := func(r rune) bool { return r <= ' ' || r > '~' }
	if len(all) > 1 || all[0] == "" || len(all[0]) > MaxIdempotencyKey || strings.ContainsFunc(all[0], invisible) {
		return "", doorward.Fail(doorward.CodeInvalidIdempotencyKey, "")
	}
	return all[0], nil
}

// seal returns the sealed body of the answer, and remembers the body.
func (i *idempotentCall) seal(out any) ([]byte, error) {
	text, err := encode(out)
	if err != nil {
		return nil, err
	}
	i.text = text
	if i.NeededProof {
		text = append(slices.Clone(afterProof), text...)
	}
	return i.key.Seal(i.place(), text), nil
}

// afterProof begins the sealed text of an answer that needed a recent proof of identity, which is no
// beginning of JSON.
var afterProof = []byte("proof ")

func (i *idempotentCall) place() seal.Place {
	return seal.Place{Table: "idempotency", ID: hex.EncodeToString(i.ID), Column: "answer"}
}
