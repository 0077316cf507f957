package store

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/internal/fold"
)

// listing describes a list that is read in pages, in several orders, forward and back.
type listing[T any] struct {
	head         string     // SELECT … FROM, to which where belongs
	count        string     // FROM of the same rows, without what only columns need
	where        string     // WHERE with parameters from $1 on
	extra        statements // more conditions, for each statement; the total has those of up
	args         int        // how many parameters where and extra have
	fields       fields[T]
	id           string // column that decides between equal rows
	idOf         func(T) string
	orders       []order[T]
	defaultOrder string // see doorward.Window.Sort
}

// order is an order that a list can have. Its column holds numbers, or keys of package fold,
// since names collate differently in the databases. It is never NULL.
type order[T any] struct {
	name   string
	column string
	number func(T) int64  // the row's value of the column
	key    func(T) string // in place of number if it is a key

	// unique: no two rows of the list have the same value, so the list isn't sorted by the id,
	// too. For that PostgreSQL would read and sort all rows, where it expects few.
	unique bool
	// prefix is a column that has one value, a parameter, in all rows of the list, and comes
	// before column in an index. To sort by both makes SQLite use that index.
	prefix, prefixValue string
}

// columns are what the rows are sorted by, each with a suffix.
func (o order[T]) columns(id, suffix string) string {
	all := []string{o.column}
	if o.prefix != "" {
		all = []string{o.prefix, o.column}
	}
	if !o.unique {
		all = append(all, id)
	}
	return strings.Join(all, suffix+", ") + suffix
}

// placeholders returns the SQL that the columns are compared with: the parameters from $first
// on.
func (o order[T]) placeholders(first int) string {
	text := fmt.Sprint("$", first)
	if o.prefix != "" {
		text = o.prefixValue + ", " + text
	}
	if !o.unique {
		text += fmt.Sprint(", $", first+1)
	}
	return text
}

// positionOf returns where the row stands in the order.
func (o order[T]) positionOf(row T, id string) doorward.Position {
	if o.key != nil {
		return doorward.Position{Key: o.key(row), ID: id}
	}
	return doorward.Position{At: o.number(row), ID: id}
}

// values returns the values of the placeholders.
func (o order[T]) values(p doorward.Position) []any {
	all := []any{p.At, p.ID}
	if o.key != nil {
		all[0] = p.Key
	}
	if o.unique {
		return all[:1]
	}
	return all
}

// placeholderCount is how many placeholders a position needs.
func (o order[T]) placeholderCount() int { return len(o.values(doorward.Position{})) }

// pages is a listing with its statements.
type pages[T any] struct {
	listing[T]
	statements map[string]statements // by the name of the order
	total      string
}

// statements read a list in one order: up and down from an end, after and before from a row.
type statements struct{ up, down, after, before string }

// countUpTo stops counting at a limit.
const countUpTo = `SELECT count(*) FROM (SELECT 1 AS one %s%s LIMIT %d) counted`

// everyList has the statements of all lists, for the tests that check and count them.
var everyList []string

func newPages[T any](l listing[T]) pages[T] {
	p := pages[T]{listing: l, statements: map[string]statements{}}
	p.total = fmt.Sprintf(countUpTo, l.count, l.where+l.extra.up, doorward.MaxTotal+1)
	everyList = append(everyList, p.total)
	for _, o := range l.orders {
		// Both are formats: beyond for the query and > or <, ordered for the direction and the
		// number of the limit's parameter.
		beyond := fmt.Sprintf("%%s  AND (%s) %%s (%s) ", o.columns(l.id, ""), o.placeholders(l.args+1))
		ordered := fmt.Sprintf("ORDER BY %s LIMIT $%%d", o.columns(l.id, "%[1]s"))
		from, limit := l.head+l.where, l.args+1+o.placeholderCount()
		s := statements{
			up:     from + l.extra.up + fmt.Sprintf(ordered, "", l.args+1),
			down:   from + l.extra.down + fmt.Sprintf(ordered, " DESC", l.args+1),
			after:  fmt.Sprintf(beyond, from+l.extra.after, ">") + fmt.Sprintf(ordered, "", limit),
			before: fmt.Sprintf(beyond, from+l.extra.before, "<") + fmt.Sprintf(ordered, " DESC", limit),
		}
		p.statements[o.name] = s
		everyList = append(everyList, s.up, s.down, s.after, s.before)
	}
	return p
}

// names returns what the list can be sorted by.
func (p pages[T]) names() (all []string) {
	for _, o := range p.orders {
		all = append(all, o.name)
	}
	return all
}

// read returns the page in the window of the rows that args select.
func (p pages[T]) read(ctx context.Context, r Reader, w doorward.Window, args ...any) (doorward.Page[T], error) {
	o, down, err := p.order(w.Sort)
	if err != nil {
		return doorward.Page[T]{}, err
	}
	query, args := p.statement(o, w, down), slices.Clip(args)
	if at := boundary(w); at != (doorward.Position{}) {
		args = append(args, o.values(at)...)
	}
	rows, err := list(ctx, r, p.fields, query, append(args, w.Limit+1)...)
	if err != nil {
		return doorward.Page[T]{}, err
	}
	found := page(rows, w, func(row T) doorward.Position { return o.positionOf(row, p.idOf(row)) })
	switch {
	case !w.Count:
	case found.Prev == nil && found.Next == nil && boundary(w) == doorward.Position{}: // this is all
		found.Total = len(found.Items)
	default:
		found.Total, err = one(ctx, r, countColumn, p.total, args[:p.args]...)
	}
	return found, err
}

// order returns the order that a window asks for, and whether it is reversed.
func (p pages[T]) order(sort string) (o order[T], down bool, err error) {
	if sort == "" {
		sort = p.defaultOrder
	}
	name, down := strings.CutPrefix(sort, "-")
	i := slices.IndexFunc(p.orders, func(o order[T]) bool { return o.name == name })
	if i < 0 {
		return o, down, doorward.InvalidFields(doorward.FieldError{
			Parameter: "sort", Code: "invalid", Message: "The list sorts by " + strings.Join(p.names(), ", ") + ", and with - before it in reverse.",
		})
	}
	return p.orders[i], down, nil
}

func (p pages[T]) statement(o order[T], w doorward.Window, down bool) string {
	s := p.statements[o.name]
	if w.IsBackward() {
		down = !down
	}
	switch {
	case boundary(w) == doorward.Position{} && down:
		return s.down
	case boundary(w) == doorward.Position{}:
		return s.up
	case down:
		return s.before
	}
	return s.after
}

// boundary is the row at which the window starts, or ends.
func boundary(w doorward.Window) doorward.Position {
	if w.IsBackward() {
		return w.Before
	}
	return w.After
}

// maxWords bounds the words of a search. The sixth and all later words count as one: a text
// must have them together, in this order.
const maxWords = 6

// contains is the condition that the column contains each of maxWords words, the
// parameters from $first on; empty ones select all. It has no LIKE: the databases differ in
// escapes and letter case. A text contains a part if removing the part changes it.
func contains(column string, first int) string {
	var all strings.Builder
	for i := range maxWords {
		fmt.Fprintf(&all, "  AND ($%[2]d = '' OR replace(%[1]s, $%[2]d, '') <> %[1]s)\n", column, first+i)
	}
	return all.String()
}

// searchArgs returns the parameters of contains.
func searchArgs(text string) []any {
	words := fold.Words(text)
	if len(words) > maxWords {
		words = append(words[:maxWords-1:maxWords-1], strings.Join(words[maxWords-1:], " "))
	}
	all := make([]any, maxWords)
	for i := range all {
		all[i] = ""
		if i < len(words) {
			all[i] = words[i]
		}
	}
	return all
}

// searchable is the text by which a row is found. It begins with a space.
func searchable(parts ...string) string { return " " + fold.Text(strings.Join(parts, " ")) }
