package console

import (
	"bytes"
	"fmt"
	"net/url"
	"testing"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/ui"
	"github.com/doorward/doorward/web/ui/uitest"
)

// A list of 50 people has at most 59 kB of HTML.
func TestSizeOfAList(t *testing.T) {
	list := people{pageData: basePage, pager: pager{Filter: filters(url.Values{}), sorting: peopleSorting, Next: "?cursor=next", From: 1, To: 50, Total: 163}, Roles: highestFirst(nil)}
	for n := range 50 {
		u := userOf(fmt.Sprintf("q4pfwys5zrdvafvsn2oaznr4%02d", n), "Ann Lee of Acme", doorward.RoleUser, doorward.UserActive)
		u.Email = fmt.Sprintf("ann.lee%02d@acme.example", n)
		list.Items = append(list.Items, member{u, true, u.Factors > 0})
	}
	var page bytes.Buffer
	v := ui.View{Page: "people", Wide: true, Body: list}
	if err := set.Render(&page, uitest.FrameOf(uitest.Sample{View: v, Frame: owner}, ui.Languages[0])); err != nil {
		t.Fatal(err)
	}
	if page.Len() > 59_000 {
		t.Errorf("the page has %d bytes", page.Len())
	}
}
