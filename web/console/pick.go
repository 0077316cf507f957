package console

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/user"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// personFilter is a filter of the trail by a person, and the people that match. The text is
// an id, an address or a part of a name.
type personFilter struct {
	Field string          // actor or target
	Text  string          // as typed
	User  doorward.User   // zero if several people match, or nobody
	Found []doorward.User // who matches the name or the address
}

// DisplayName is the name or the address of the person.
func (p personFilter) DisplayName() string { return displayName(p.User) }

// IsNobody reports whether no event can be found: nobody matches, or several people.
func (p personFilter) IsNobody() bool { return p.User.ID == "" }

// maxFound bounds the people to choose from.
const maxFound = 8

var idLike = regexp.MustCompile(`^[a-z]{3}_`)

// resolvePeople replaces the names and addresses in the filters by ids where one person
// matches. Ids and addresses of people who have left stay as typed, since events have them.
// A name that several people match, or nobody, matches no event. For a caller who may not read
// people, all filters stay as typed.
func (h *console) resolvePeople(ctx context.Context, c *ui.Call, f filters) (filters, []personFilter, error) {
	resolved, people := filters{}, []personFilter(nil)
	for name, values := range f {
		resolved[name] = values
	}
	for _, field := range []string{"actor", "target"} {
		text := strings.TrimSpace(f.Get(field))
		isOperator := field == "actor" && text == string(doorward.Operator) // as in the API
		if text == "" || isOperator || !c.Can(doorward.UserRead) {
			continue
		}
		p, err := h.findPerson(ctx, c, field, text)
		if err != nil {
			return nil, nil, err
		}
		if p.User.ID != "" {
			url.Values(resolved).Set(field, p.User.ID)
		}
		if p.User.ID != "" || !idLike.MatchString(text) && !strings.Contains(text, "@") {
			people = append(people, p)
		}
	}
	return resolved, people, nil
}

func (h *console) findPerson(ctx context.Context, c *ui.Call, field, text string) (personFilter, error) {
	p := personFilter{Field: field, Text: text}
	if idLike.MatchString(text) {
		u, err := h.app.Users.Get(ctx, c.Caller, text)
		if doorward.HasCode(err, doorward.CodeNotFound) {
			err = nil
		}
		p.User = u
		return p, err
	}
	exact, err := h.app.Users.GetByEmail(ctx, c.Caller, text)
	if err != nil && !doorward.HasCode(err, doorward.CodeNotFound) {
		return p, err
	}
	p.User = exact
	found, err := h.app.Users.List(ctx, c.Caller, user.Filter{Text: text}, doorward.Window{Limit: maxFound})
	if len(found.Items) == 1 {
		p.User = found.Items[0]
	}
	p.Found = found.Items
	return p, err
}

// suggestions are the members that a field for one of them offers.
type suggestions struct {
	Path    string          // finds members while one types
	Members []doorward.User // that match what the field has, else the first of all
}

// maxSuggested bounds the members that a page offers before anything is typed.
const maxSuggested = 50

// suggestMembers returns the active members that match the text. If nobody does, or the text is an
// address or an id, it returns the first of all. A caller who may not read people gets none. Errors:
// unavailable.
func (h *console) suggestMembers(ctx context.Context, c *ui.Call, text string) (suggestions, error) {
	s := suggestions{Path: c.Site().BasePath() + "/api/v2/users"}
	if !c.Can(doorward.UserRead) {
		return suggestions{}, nil
	}
	if strings.Contains(text, "@") || idLike.MatchString(text) || !front.IsText(text) {
		text = ""
	}
	filter := user.Filter{Text: text, Status: string(doorward.UserActive)}
	found, err := h.app.Users.List(ctx, c.Caller, filter, doorward.Window{Limit: maxSuggested})
	if err == nil && len(found.Items) == 0 {
		filter.Text = ""
		found, err = h.app.Users.List(ctx, c.Caller, filter, doorward.Window{Limit: maxSuggested})
	}
	s.Members = found.Items
	return s, err
}

// preset is a link to a filter of the trail that is often needed.
type preset struct {
	Name    string // the page shows the text audit.preset.NAME
	Link    string
	Current bool
}

// presets returns the links. Each keeps the other filters, but those of a time remove the end of
// the period. Days are those of UTC.
func presets(f filters, now time.Time) (all []preset) {
	from := f.Get("from")
	start, err := time.Parse(fieldTime, from)
	for _, p := range []struct {
		name, from string
		current    bool
	}{
		{"hour", now.Add(-time.Hour).UTC().Format(fieldTime), err == nil && now.Sub(start) < 65*time.Minute}, // a page may stay open for some minutes
		{"today", now.UTC().Format(time.DateOnly), false},
		{"week", now.UTC().AddDate(0, 0, -6).Format(time.DateOnly), false},
	} {
		current := f.Get("to") == "" && (p.current || from == p.from)
		all = append(all, preset{p.name, toggleLink(f, "from", p.from, current, "to"), current})
	}
	signIns, refused := f.Get("action") == string(doorward.SessionOpen), f.Get("outcome") == string(doorward.Refused)
	return append(all,
		preset{"signins", toggleLink(f, "action", string(doorward.SessionOpen), signIns), signIns},
		preset{"refused", toggleLink(f, "outcome", string(doorward.Refused), refused), refused},
	)
}

// toggleLink returns a link that sets the filter, or removes it if it is set, and removes the
// filters in without.
func toggleLink(f filters, name, value string, isSet bool, without ...string) string {
	if isSet {
		value = ""
	}
	return filters(f.without(without...)).With(name, value)
}
