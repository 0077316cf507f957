package ui

import (
	"net/url"
	"slices"
)

// TabParameter is the query parameter that chooses a tab. The forms on a tab are sent with it, so that
// a refused form is shown on its own tab.
const TabParameter = "tab"

// Tabs are the parts of a page about one object, of which one is shown. They are links, so that each
// has an address and works without scripts.
type Tabs struct {
	Items   []Tab
	Current string
}

// Tab is one of the parts. Its message has the key "tab." and the name.
type Tab struct {
	Name, Link string
	Count      int64 // of its rows, shown after the name; 0 for none
	IsDone     bool  // nothing is left to do there, which a sign after the name says
}

// Tabs returns the tabs of the names at the path, below the path of the base URL. The query of the
// request chooses the current one; without one that is known, it is the first. The links keep the
// parameters in kept.
func (c *Call) Tabs(path string, kept url.Values, names ...string) Tabs {
	all := Tabs{Current: names[0]}
	if asked := c.R.URL.Query().Get(TabParameter); slices.Contains(names, asked) {
		all.Current = asked
	}
	for _, name := range names {
		q := url.Values{}
		for k, v := range kept {
			q[k] = v
		}
		if name != names[0] {
			q.Set(TabParameter, name)
		}
		link := c.Site().BasePath() + path
		if len(q) > 0 {
			link += "?" + q.Encode()
		}
		all.Items = append(all.Items, Tab{Name: name, Link: link})
	}
	return all
}

// Find returns the tab of the name; without one, the zero Tab, which has no link.
func (t Tabs) Find(name string) Tab {
	for _, one := range t.Items {
		if one.Name == name {
			return one
		}
	}
	return Tab{}
}

// Is reports whether the tab of the name is shown.
func (t Tabs) Is(name string) bool { return t.Current == name }

// TabQuery returns the parameter of the request's tab, for the address that a form leads to; empty for
// the first tab.
func (c *Call) TabQuery() url.Values {
	if asked := c.R.URL.Query().Get(TabParameter); asked != "" {
		return url.Values{TabParameter: {asked}}
	}
	return url.Values{}
}
