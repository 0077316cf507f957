package front

import (
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

// Sorted sorts a list that has no pages, as the request asks, and counts it. The keys of
// orders are the names in Doc.Sort. Errors: invalid_query, validation_failed.
func Sorted[T any](c *Call, all []T, orders map[string]Order[T]) (Total, error) {
	sort, err := c.Sort()
	name, down := strings.CutPrefix(sort, "-")
	if order := orders[name]; order != nil {
		slices.SortStableFunc(all, func(a, b T) int {
			if down {
				a, b = b, a
			}
			return order(a, b)
		})
	}
	return Total{Total: new(len(all))}, err
}
