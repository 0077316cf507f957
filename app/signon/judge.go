package signon

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/access"
	"github.com/doorward/doorward/app/acs"
	"github.com/doorward/doorward/app/answer"
	"github.com/doorward/doorward/app/flow"
	"github.com/doorward/doorward/app/provider"
	"github.com/doorward/doorward/internal/oidcrp"
	"github.com/doorward/doorward/internal/samlsp/fault"
	"github.com/doorward/doorward/store"
)

// arrival is what a browser has brought to the callback.
type arrival struct {
	flow.Found
	received *acs.Received // of SAML; nil: OpenID Connect, or nothing of ours
}

// arrive finds what the browser has begun, among its cookies. Errors: unavailable.
func (s *SignOn) arrive(ctx context.Context, conID string, query url.Values, tabs []flow.Tab) (arrived arrival, err error) {
	if !acs.IsAnswer(query) {
		arrived.Found, err = s.tabs.ByState(ctx, conID, query.Get("state"), tabs)
		return arrived, err
	}
	received, isOurs, err := s.acs.Open(ctx, conID, query)
	if err != nil || !isOurs {
		return arrived, err
	}
	arrived.received = &received
	arrived.Found, err = s.tabs.ByRequest(ctx, conID, received.Request, received.State, tabs)
	return arrived, err
}

// counters returns what the callback counts in if it ends refused: nothing if it has counted at acs.
func (arrived arrival) counters(by doorward.Caller) []access.Counter {
	switch r := arrived.received; {
	case r != nil && r.Fault != nil && !r.Fault.Unavailable:
		return nil
	case arrived.IsBrowsers:
		return refusals(by)
	}
	return strayCounters(by)
}

// take uses up what the browser has begun, and what the provider has answered to it. Errors: sign_on_state if it was
// used before; sign_on_refused if it is the answer to another browser's request.
func (a *attempt) take(ctx context.Context, arrived arrival) error {
	if !arrived.IsAnswer {
		f := answer.Fault{Check: fault.CheckInResponseTo, Seen: "a response to a request of another browser", Advice: oidcrp.AdviceStartAgain}
		if refused := a.received.Fault; refused != nil {
			f = *refused
		}
		return a.fault(ctx, f)
	}
	unused, replayed := false, (*answer.Fault)(nil)
	err := a.s.writer.Upkeep(ctx, func(tx *store.Tx) (err error) {
		unused, err = tx.UseState(ctx, useHash("state", a.flow.State), a.flow.At.Add(flow.Life+time.Minute))
		if err != nil || !unused || a.received == nil || a.received.Fault != nil {
			return err
		}
		a.accepted, err = a.s.acs.Use(ctx, tx, a.connection.ID, *a.received)
		if errors.As(err, &replayed) {
			return nil // the flow is used up all the same
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case !unused:
		return a.refuseAs(ctx, doorward.CodeSignOnState, faultOf(CheckState))
	case replayed != nil:
		return a.refuse(ctx, *replayed)
	}
	return nil
}

// judged is what a provider has answered, and what the checks of its protocol say of that.
type judged struct {
	by       doorward.ConnectionParameters // by which it was judged
	asserted answer.Asserted
	signedBy []string      // acs.Accepted.SignedBy
	fault    *answer.Fault // nil: all checks have passed
}

// judge returns the provider's answer, by the parameters that await a switch or by those in force. Errors: those of ready
// that are none of the provider's.
func (a *attempt) judge(ctx context.Context, query url.Values, pending bool) (judged, error) {
	if a.received != nil {
		return a.judgeSAML(pending), nil
	}
	return a.judgeOIDC(ctx, query, pending)
}

// judgeSAML returns what acs has judged. A step-up demands a context that the connection trusts, as the request did.
func (a *attempt) judgeSAML(pending bool) judged {
	if f := a.received.Fault; f != nil {
		return judged{asserted: a.received.Said, fault: f}
	}
	j := judged{by: a.accepted.By, asserted: a.accepted.Asserted, signedBy: a.accepted.SignedBy}
	if a.accepted.Pending != pending {
		f := faultOf(CheckState)
		j.fault = &f
		return j
	}
	contexts := stepUpContexts(a.connection, a.flow)
	if len(contexts) > 0 && !slices.ContainsFunc(j.asserted.Contexts, func(name string) bool { return slices.Contains(contexts, name) }) {
		j.fault = &answer.Fault{
			Check: CheckFactor, Seen: oidcrp.Clip(strings.Join(j.asserted.Contexts, " ")), Wanted: oidcrp.Clip(strings.Join(contexts, " ")), Advice: adviceContext,
		}
	}
	return j
}

// stepUpContexts are the authentication contexts of which a step-up demands one of a SAML provider: those that the
// connection trusts.
func stepUpContexts(c doorward.Connection, f flow.Flow) []string {
	if f.Purpose != flow.ForStepUp || !c.TrustFactor {
		return nil
	}
	return c.FactorACR
}

// judgeOIDC asks the provider for the token, and returns what that says.
func (a *attempt) judgeOIDC(ctx context.Context, query url.Values, pending bool) (j judged, err error) {
	asking, cancel := provider.WhileAsking(ctx)
	defer cancel()
	ready, err := a.s.ready(asking, a.connection.ID, pending)
	if doorward.HasCode(err, doorward.CodeProviderUnavailable) {
		return judged{fault: outOfReach(err)}, nil
	}
	if err != nil {
		return j, err
	}
	said, err := a.s.connections.Provider().Finish(asking, ready.Discovery, ready.Config, a.flow.Flow, query)
	a.s.connections.SecretUsed(ctx, ready, said.UsedSecret)
	j, failed := judged{by: ready.Parameters}, ""
	if f, isFault := errors.AsType[*oidcrp.Fault](err); isFault {
		j.fault, failed, err = answer.FaultOfOIDC(f), f.Check, nil
	}
	j.asserted = answer.OfOIDC(said, failed)
	return j, err
}

// outOfReach returns the fault of a provider of which what it says of itself can't be read.
func outOfReach(err error) *answer.Fault {
	if f, is := errors.AsType[*oidcrp.Fault](err); is {
		return answer.FaultOfOIDC(f)
	}
	return &answer.Fault{Check: oidcrp.CheckOfIssuer, Advice: oidcrp.AdviceRetry, Unavailable: true, Err: err}
}
