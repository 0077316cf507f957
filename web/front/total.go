package front

import (
	"context"
	"slices"
	"strings"

	"github.com/doorward/doorward"
)

// Total counts the rows of a whole list. Embed it in the list's answer.
type Total struct {
	Total        *int `json:"total,omitempty" example:"305" doc:"Rows of the whole list, as filtered; absent for more than 10,000"`
	TotalAtLeast *int `json:"totalAtLeast,omitempty" example:"10000" doc:"In place of total: there are more rows than that"`
}

// ViewTotal returns the count of a page's list as it is shown.
func ViewTotal[T any](p doorward.Page[T]) Total {
	if p.Total > doorward.MaxTotal {
		return Total{TotalAtLeast: new(doorward.MaxTotal)}
	}
	return Total{Total: &p.Total}
}

// Order says how two rows of a list compare.
type Order[T any] func(a, b T) int

// PageInfo is what an answer says about a page besides its rows. Embed it in the list's answer.
type PageInfo struct {
	NextCursor string `json:"nextCursor,omitempty" doc:"Send as cursor for the next page; absent at the end"`
	Total
}

// List answers with the part of a list that the request asks for. rows reads it, and view shows a row. Errors: those of
// Window and of rows.
func List[T, V any](ctx context.Context, c *Call, rows func(context.Context, doorward.Caller, doorward.Window) (doorward.Page[T], error), view func(T) V) ([]V, PageInfo, error) {
	w, err := c.Window(ctx)
	if err != nil {
		return nil, PageInfo{}, err
	}
	page, err := rows(ctx, c.Caller, w)
	if err != nil {
		return nil, PageInfo{}, err
	}
	return Show(ctx, c, page, view)
}

// With returns the rows of List for a list that takes one thing more, such as a filter or an id.
func With[X, T any](x X, rows func(context.Context, doorward.Caller, X, doorward.Window) (doorward.Page[T], error)) func(context.Context, doorward.Caller, doorward.Window) (doorward.Page[T], error) {
	return func(ctx context.Context, by doorward.Caller, w doorward.Window) (doorward.Page[T], error) {
		return rows(ctx, by, x, w)
	}
}

// Show is List for a page that was read.
func Show[T, V any](ctx context.Context, c *Call, page doorward.Page[T], view func(T) V) (items []V, info PageInfo, err error) {
	items = make([]V, 0, len(page.Items))
	for _, row := range page.Items {
		items = append(items, view(row))
	}
	info.Total = ViewTotal(page)
	info.NextCursor, err = c.Cursor(ctx, page.Next)
	return items, info, err
}

// PageOf returns the page that the request asks for of a list that is read as a whole. The keys
// of orders are the names in Doc.Sort. Errors: those of Window.
func PageOf[T any](ctx context.Context, c *Call, all []T, id func(T) string, orders map[string]Order[T]) ([]T, PageInfo, error) {
	w, err := c.Window(ctx)
	if err != nil {
		return nil, PageInfo{}, err
	}
	sortRows(all, w.Sort, orders)
	begin := indexAfter(all, w.After, id)
	rows, info := all[begin:], PageInfo{Total: ViewTotal(doorward.Page[T]{Total: len(all)})}
	if len(rows) > w.Limit {
		rows = rows[:w.Limit]
		info.NextCursor, err = c.Cursor(ctx, &doorward.Position{At: int64(begin + w.Limit), ID: id(rows[w.Limit-1])})
	}
	return rows, info, err
}

func sortRows[T any](rows []T, sort string, orders map[string]Order[T]) {
	name, isDescending := strings.CutPrefix(sort, "-")
	if order := orders[name]; order != nil {
		slices.SortStableFunc(rows, func(a, b T) int {
			if isDescending {
				a, b = b, a
			}
			return order(a, b)
		})
	}
}

// indexAfter returns the index of the first row after a position. The position's ID is that of the
// last row of the page before, and its At the number of rows up to and including that row. If
// the row is gone, the next page begins in its place.
func indexAfter[T any](rows []T, last doorward.Position, id func(T) string) int {
	if i := slices.IndexFunc(rows, func(row T) bool { return id(row) == last.ID }); i >= 0 {
		return i + 1
	}
	return max(0, min(int(last.At)-1, len(rows)))
}
