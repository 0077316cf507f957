package console

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
	"github.com/doorward/doorward/web/ui"
)

// filterParameters returns the filters as a route declares them, so that a cursor is valid
// only with the filters that it was made with.
func filterParameters(filters []string) []front.Parameter {
	var all []front.Parameter
	for _, name := range filters {
		all = append(all, front.Parameter{Name: name})
	}
	return all
}

// filters are the requested filters of a list.
type filters url.Values

func filtersOf(c *ui.Call, names []string) (filters, error) {
	all := url.Values{}
	for _, name := range names {
		value, err := c.Filter(name)
		if err != nil {
			return nil, err
		}
		if value != "" {
			all.Set(name, value)
		}
	}
	return filters(all), nil
}

// Get returns the filter of the name.
func (f filters) Get(name string) string { return url.Values(f).Get(name) }

// Any reports whether there is a filter, besides the order and the tab.
func (f filters) Any() bool { return len(f.without("sort", ui.TabParameter)) > 0 }

// Cleared returns a link to the list without filters, in the same order and on the same tab.
func (f filters) Cleared() string {
	return "?" + keptQuery(url.Values(f), "sort", ui.TabParameter).Encode()
}

// Count counts those of the filters that are in use.
func (f filters) Count(names ...string) (n int) {
	for _, name := range names {
		if f.Get(name) != "" {
			n++
		}
	}
	return n
}

// linkWith returns a link to the list with these filters and one more parameter, unless that
// is empty.
func (f filters) linkWith(name, value string) string {
	q := f.without()
	if value != "" {
		q.Set(name, value)
	}
	return "?" + q.Encode()
}

// With returns a link to the beginning of the list with the filter set to another value, or
// without it if the value is empty.
func (f filters) With(name, value string) string {
	return filters(f.without(name)).linkWith(name, value)
}

// without returns the query of the filters but those with these names.
func (f filters) without(names ...string) url.Values {
	q := maps.Clone(url.Values(f))
	if q == nil {
		q = url.Values{}
	}
	for _, name := range names {
		q.Del(name)
	}
	return q
}

// sorting is how the page of a list can sort it. The zero value is for a list of one order.
type sorting struct {
	columns []column
	usual   string // the order without a parameter "sort", as that has it
}

// column is a column that a list can be sorted by.
type column struct {
	Name  string // of the order, as in the parameter "sort"
	Label string // key of the column's heading
	kind  string // of its values: text, time, end or rank, by which the messages of both directions are named
}

// sortHead is the heading of a column that the list can be sorted by.
type sortHead struct {
	column
	Class  string
	Title  string // key of a message about the order; empty for none
	Link   string // to the beginning of the list, sorted by the column; in reverse if it is already
	Sorted string // the present order by the column as a value of aria-sort; empty: by another one
}

// WithTitle returns the heading with the message of the key about its order.
func (h sortHead) WithTitle(key string) sortHead {
	h.Title = key
	return h
}

// sortChoice is an order to choose from.
type sortChoice struct {
	Value     string // of the parameter "sort"
	Label     string // key of the column's heading
	Direction string // key of the message
	Current   bool
}

// Order is the present order of the list, as the parameter "sort" has it.
func (r pager) Order() string { return cmp.Or(r.Filter.Get("sort"), r.sorting.usual) }

// SortHead returns the heading of the column with the name, and with the class for its width.
func (r pager) SortHead(name, class string) sortHead {
	i := slices.IndexFunc(r.sorting.columns, func(c column) bool { return c.Name == name })
	head := sortHead{column: r.sorting.columns[i], Class: class}
	next := name
	switch r.Order() {
	case name:
		head.Sorted, next = "ascending", "-"+name
	case "-" + name:
		head.Sorted = "descending"
	}
	if next == r.sorting.usual {
		next = ""
	}
	head.Link = r.Filter.With("sort", next)
	return head
}

// SortChoices returns all orders, each column in both directions.
func (r pager) SortChoices() (all []sortChoice) {
	for _, c := range r.sorting.columns {
		for _, one := range []sortChoice{{c.Name, c.Label, "sort." + c.kind + ".up", false}, {"-" + c.Name, c.Label, "sort." + c.kind + ".down", false}} {
			if one.Current = one.Value == r.Order(); one.Value == r.sorting.usual {
				one.Value = ""
			}
			all = append(all, one)
		}
	}
	return all
}

// pager has the state and the links of a list that is shown in pages.
type pager struct {
	Filter     filters
	Query      string // of this page of the list
	ReturnHere string // query of a link, with which the linked page can link back to this one
	First      string // link to the first page; empty on it
	Prev       string // link to the previous page; empty on the first
	Next       string // link to the next page; empty on the last
	Total      int    // rows of the whole list; doorward.MaxTotal+1 for more
	sorting    sorting
	size       int // rows of a whole page
	From, To   int // numbers of the first and the last row of the page, from 1, as the links count
}

// rowParameter is the query parameter of the links between the pages of a list with the number of
// the first row, which a cursor doesn't have.
const rowParameter = "row"

// IsWhole reports whether the page has the whole list.
func (r pager) IsWhole() bool { return r.Prev == "" && r.Next == "" }

// HasUncounted reports whether there are more rows than are counted.
func (r pager) HasUncounted() bool { return r.Total > doorward.MaxTotal }

// readWindow returns the pager, without Prev, Next and Total, and the requested part of the list;
// with an invalid cursor that is the beginning.
func readWindow(ctx context.Context, c *ui.Call, names []string, s sorting) (pager, doorward.Window, error) {
	f, err := filtersOf(c, names)
	if err != nil {
		return pager{}, doorward.Window{}, err
	}
	pages := pager{Filter: f, sorting: s, From: max(1, queryNumber(c, rowParameter))}
	here := url.Values(maps.Clone(f))
	for _, name := range []string{"cursor", "before", rowParameter} {
		if at := c.R.URL.Query().Get(name); at != "" {
			here.Set(name, at)
		}
	}
	pages.Query = here.Encode()
	pages.ReturnHere = returnToList(pages.Query)
	window, err := c.WindowEitherWay(ctx)
	if doorward.HasCode(err, doorward.CodeInvalidCursor) {
		pages.From, pages.size = 1, rowsPerPage
		return pages, doorward.Window{Limit: rowsPerPage, Sort: f.Get("sort"), Count: true}, nil
	}
	pages.size = window.Limit
	if window.IsBackward() || window.After != (doorward.Position{}) {
		pages.First = f.linkWith("", "") // without a cursor
	}
	return pages, window, err
}

// rowsPerPage is the default number of rows on a page, as in package front, and how many people
// are read to find one by address.
const rowsPerPage = 50

// setLinks sets To and the links to the previous and the next page, and removes the link to the first
// page from that page. rows is how many rows the page has.
func (r *pager) setLinks(ctx context.Context, c *ui.Call, rows int, prev, next *doorward.Position) error {
	if prev == nil && next != nil {
		r.First = ""
	}
	if prev == nil {
		r.From = 1
	}
	r.To = r.From + rows - 1
	before, err := c.Cursor(ctx, prev)
	if err != nil {
		return err
	}
	after, err := c.Cursor(ctx, next)
	if before != "" {
		r.Prev = r.Filter.linkWith("before", before) + "&" + rowParameter + "=" + strconv.Itoa(max(1, r.From-r.size))
	}
	if after != "" {
		r.Next = r.Filter.linkWith("cursor", after) + "&" + rowParameter + "=" + strconv.Itoa(r.To+1)
	}
	return err
}

// badFilter makes the view say that a filter is invalid, if err is about one. It returns
// other errors unchanged.
func badFilter(v ui.View, err error) (ui.View, error) {
	if err == nil || !doorward.HasCode(err, doorward.CodeValidationFailed) {
		return v, err
	}
	v.Note, v.Status = "filter.wrong", front.Status(doorward.CodeValidationFailed)
	return v, nil
}
