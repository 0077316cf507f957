package console

import (
	"context"
	"net/url"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/connection"
	"github.com/doorward/doorward/web/ui"
)

// connectionAction is an action on a connection that is confirmed first.
type connectionAction struct {
	danger bool   // the button is shown as dangerous
	of     string // prefix of the id of the part that it concerns; empty: the whole connection
	tab    string // of the page that shows the result; empty for the first
	gone   bool   // the connection is gone afterwards
	// preview adds what it would do to the question; nil: there is nothing to count.
	preview func(ctx context.Context, h *console, c *ui.Call, q *connectionQuestion) error
	do      func(ctx context.Context, h *console, c *ui.Call, id, of string) (connection.Ended, error)
}

// connectionActions are keyed by the part of their path after the connection.
var connectionActions = map[string]connectionAction{
	"enable": {do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
		return h.setStatus(ctx, c, id, doorward.ConnectionActive, false)
	}},
	"disable": {
		danger: true,
		preview: func(ctx context.Context, h *console, c *ui.Call, q *connectionQuestion) (err error) {
			q.Ends, err = h.setStatus(ctx, c, q.Connection.ID, doorward.ConnectionDisabled, true)
			return err
		},
		do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
			return h.setStatus(ctx, c, id, doorward.ConnectionDisabled, false)
		},
	},
	"delete": {
		danger: true, gone: true,
		preview: func(ctx context.Context, h *console, c *ui.Call, q *connectionQuestion) (err error) {
			q.Ends, err = h.app.Connections.Delete(ctx, c.Caller, q.Connection.ID, dryRun)
			return err
		},
		do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
			return h.app.Connections.Delete(ctx, c.Caller, id, !dryRun)
		},
	},
	"switch": {
		preview: func(ctx context.Context, h *console, c *ui.Call, q *connectionQuestion) error {
			would, err := h.app.Connections.Switch(ctx, c.Caller, q.Connection.ID, dryRun)
			q.Resting, q.Concerned = would.Identities, would.People
			return err
		},
		do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
			_, err := h.app.Connections.Switch(ctx, c.Caller, id, !dryRun)
			return connection.Ended{}, err
		},
	},
	"discard": {danger: true, do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
		return connection.Ended{}, h.app.Connections.DropPending(ctx, c.Caller, id)
	}},
	"setup-end": {danger: true, do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
		return connection.Ended{}, h.app.SetupLinks.End(ctx, c.Caller, id)
	}},
	"secret": {danger: true, of: doorward.PrefixClientSecret, tab: "secrets", do: func(ctx context.Context, h *console, c *ui.Call, id, of string) (connection.Ended, error) {
		return connection.Ended{}, h.app.ClientSecrets.Delete(ctx, c.Caller, id, of)
	}},
	"certificate": {danger: true, of: ofCertificate, tab: "certificates", do: func(ctx context.Context, h *console, c *ui.Call, id, of string) (connection.Ended, error) {
		return h.takeCertificate(ctx, c, id, of)
	}},
	"certificates-back": {tab: "certificates", do: func(ctx context.Context, h *console, c *ui.Call, id, _ string) (connection.Ended, error) {
		return h.bringCertificatesBack(ctx, c, id)
	}},
	"scim-secret": {danger: true, of: doorward.PrefixSCIMSecret, tab: "directory", do: func(ctx context.Context, h *console, c *ui.Call, id, of string) (connection.Ended, error) {
		revocation, err := h.app.Directories.DeleteSecret(ctx, c.Caller, id, of)
		return connection.Ended{Revocation: revocation}, err
	}},
	"unlink": {danger: true, of: doorward.PrefixIdentity, tab: "identities", do: func(ctx context.Context, h *console, c *ui.Call, _, of string) (connection.Ended, error) {
		return h.app.Connections.Unlink(ctx, c.Caller, of)
	}},
}

// ofCertificate is connectionAction.of for a certificate, which is known by its fingerprint.
const ofCertificate = "certificate"

// dryRun asks what an action would do.
const dryRun = true

func (h *console) setStatus(ctx context.Context, c *ui.Call, id string, to doorward.ConnectionStatus, isDryRun bool) (connection.Ended, error) {
	status := string(to)
	_, ended, err := h.app.Connections.Edit(ctx, c.Caller, id, connection.Change{Draft: connection.Draft{Status: &status}, DryRun: isDryRun})
	return ended, err
}

// connectionQuestion is the page that asks to confirm an action on a connection.
type connectionQuestion struct {
	pageData
	Connection provider
	Act, Of    string
	Part       string // what the part is known by: the end of a secret, the address of a person
	Danger     bool
	Back       string // path of the page to go back to
	IsCounted  bool   // Ends, Resting and Concerned are known; not after a refusal
	Ends       connection.Ended
	Resting    int // identities that count only once they are used again
	Concerned  []connection.Person
	Idle       bool // the tenant's policy lets no connection sign anybody in
}

// shownConcerned is how many people a question names.
const shownConcerned = 10

// Then is the key of what happens.
func (q connectionQuestion) Then() string {
	key := "sso." + q.Act + ".then"
	if q.Connection.IsDirectory() && (q.Act == "enable" || q.Act == "disable") {
		key += ".scim"
	}
	return key
}

// After is the key of what is true then.
func (q connectionQuestion) After() string {
	key := "sso." + q.Act + ".after"
	if q.Connection.IsDirectory() && q.Act == "disable" {
		key += ".scim"
	}
	return key
}

// Sessions counts those that end.
func (q connectionQuestion) Sessions() int { return int(q.Ends.Sessions) }

// concerned is somebody whom the action concerns.
type concerned struct {
	Email    string
	Sessions int // that end
}

// People are some of those whom the action concerns.
func (q connectionQuestion) People() (all []concerned) {
	for _, p := range slices.Concat(q.Ends.People, q.Concerned) {
		if len(all) < shownConcerned {
			all = append(all, concerned{p.Email, int(p.Sessions)})
		}
	}
	return all
}

// connectionAct returns the action that the path names, and the id of the part that it concerns.
func connectionAct(c *ui.Call) (act connectionAction, of string, err error) {
	act, isKnown := connectionActions[c.R.PathValue("act")]
	if !isKnown || (act.of == "") != (c.R.PathValue("of") == "") {
		return act, "", doorward.Fail(doorward.CodeNotFound, "")
	}
	switch {
	case act.of == ofCertificate:
		if of = c.R.PathValue("of"); !fingerprint.MatchString(of) {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
	case act.of != "":
		of, err = c.ID("of", act.of)
	}
	return act, of, err
}

func (h *console) askConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	act, of, err := connectionAct(c)
	if err != nil {
		return ui.View{}, err
	}
	s, err := h.pageData(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	p, err := h.connectionAt(ctx, c)
	if err != nil {
		return ui.View{}, err
	}
	name := c.R.PathValue("act")
	q := connectionQuestion{pageData: s, Connection: p, Act: name, Of: of, Danger: act.danger, Back: connectionPath + "/" + p.ID + tabQuery(act.tab)}
	if q.Part, err = h.partOf(ctx, c, p, name, of); err != nil {
		return ui.View{}, err
	}
	if name == "enable" && !p.IsDirectory() {
		policy, err := h.app.Demands.Get(ctx, c.Caller)
		if err != nil {
			return ui.View{}, err
		}
		q.Idle = !policy.SignsIn()
	}
	if act.preview != nil && !c.WasRefused() {
		err = act.preview(ctx, h, c, &q)
		if doorward.HasCode(err, doorward.CodeStepUpRequired) {
			return c.ProveFirst(connectionPath + "/" + p.ID + "/" + name), nil
		}
		q.IsCounted = true
	}
	return ui.View{Page: "connectionact", Title: "sso." + name + ".title", Body: q}, err
}

// tabQuery is the query of a link to the tab; empty for the first one.
func tabQuery(tab string) string {
	if tab == "" {
		return ""
	}
	return "?" + url.Values{ui.TabParameter: {tab}}.Encode()
}

// partOf returns what the part of the connection is known by. Errors: not_found.
func (h *console) partOf(ctx context.Context, c *ui.Call, p provider, act, of string) (string, error) {
	switch act {
	case "secret":
		i := slices.IndexFunc(p.Secrets, func(s doorward.ConnectionSecret) bool { return s.ID == of })
		if i < 0 {
			return "", doorward.Fail(doorward.CodeNotFound, "")
		}
		return p.Secrets[i].Hint, nil
	case "certificate":
		if said := p.Trusted(); said != nil {
			for _, one := range said.Certificates {
				if one.Fingerprint == of {
					return one.Short(), nil
				}
			}
		}
		return "", doorward.Fail(doorward.CodeNotFound, "")
	case "scim-secret":
		i := slices.IndexFunc(p.SCIM, func(s doorward.SCIMSecret) bool { return s.ID == of })
		if i < 0 {
			return "", doorward.Fail(doorward.CodeNotFound, "")
		}
		return p.SCIM[i].Hint, nil
	case "unlink":
		found, err := h.app.Connections.Identity(ctx, c.Caller, of)
		if err == nil && found.ConnectionID != p.ID {
			err = doorward.Fail(doorward.CodeNotFound, "")
		}
		if err != nil {
			return "", err
		}
		return h.memberName(ctx, c, found.UserID)
	}
	return "", nil
}

func (h *console) actOnConnection(ctx context.Context, c *ui.Call) (ui.View, error) {
	act, of, err := connectionAct(c)
	if err != nil {
		return ui.View{}, err
	}
	id, err := c.ID("id", doorward.PrefixConnection)
	if err != nil {
		return ui.View{}, err
	}
	name := c.R.PathValue("act")
	done, err := act.do(ctx, h, c, id, of)
	c.SetRevocation(done.Revocation)
	if err != nil {
		return ui.View{}, err
	}
	var counts *ended
	if act.preview != nil && name != "switch" || name == "unlink" {
		counts = &ended{Sessions: int(done.Sessions)}
	}
	to := connectionPath + "/" + id
	if act.gone {
		to = ssoPath
	}
	tab := url.Values{}
	if act.tab != "" {
		tab.Set(ui.TabParameter, act.tab)
	}
	return redirectToTab(c, to, tab, "connection-"+name, counts), nil
}
