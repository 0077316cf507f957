package front

import (
	"net/http"
	"net/url"
	"strings"
)

// TakesForm marks the endpoint of a form on the page with the path, without the path of the base URL. A browser that
// loads the form's address, as by reloading or bookmarking the answer to a refused form, is led to a page instead of
// being told that the method is wrong: to the nearest one above the address, or else to that of the path.
func (e Endpoint) TakesForm(path string) Endpoint {
	e.takesForm, e.formPage = true, path
	return e
}

// resource has the routes of a path, and where to lead a browser that loads it, if it only takes a form.
type resource struct {
	byMethod map[string]Route
	up       int    // how many segments above the path is the page; 0: none is there
	page     string // path of the page if none is above it; empty: none
}

// leadToPages sets where the resources lead that only take forms, by their patterns.
func leadToPages(all map[string]*resource) {
	for path, one := range all {
		form, isPosted := one.byMethod[http.MethodPost]
		if _, isShown := one.byMethod[http.MethodGet]; !isPosted || isShown || !form.Endpoint.takesForm {
			continue
		}
		one.up, one.page = segmentsToPage(all, path), form.Endpoint.formPage
	}
}

// segmentsToPage counts the segments to take off the pattern until it is that of a page; 0: there is none.
func segmentsToPage(all map[string]*resource, pattern string) int {
	for n := 1; ; n++ {
		pattern = pattern[:max(0, strings.LastIndex(pattern, "/"))]
		if pattern == "" {
			return 0
		}
		if above := all[pattern]; above != nil {
			if _, isShown := above.byMethod[http.MethodGet]; isShown {
				return n
			}
		}
	}
}

// leadToPage redirects a request that loads the address of a form to its page, and reports whether it has one. The query
// says which tab of the page it is, for example.
func (s *Site) leadToPage(w http.ResponseWriter, r *http.Request, to *resource) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead || to.up == 0 && to.page == "" {
		return false
	}
	page := r.URL.Path
	for range to.up {
		page = page[:strings.LastIndex(page, "/")]
	}
	if to.up == 0 {
		page = to.page
	}
	address := url.URL{Path: s.BasePath() + page, RawQuery: r.URL.RawQuery}
	w.Header().Set("Location", address.String())
	w.WriteHeader(http.StatusSeeOther)
	return true
}
