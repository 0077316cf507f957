package pages

import (
	"net/url"
	"slices"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/web/front"
)

// problemPage is the page behind a problem's type.
type problemPage struct {
	doorward.Problem
	Status    int
	Endpoints []endpoint // that name the code
	Body      []token
}

// statusGroup is a part of the list of all problems.
type statusGroup struct {
	Status   int
	Problems []doorward.Problem
}

// problemRoutes returns the routes of the page of each code and of their list. Each page has
// its own path, so that an unknown code is an unknown path for every method.
func (p *pageRenderer) problemRoutes() []route {
	var routes []route
	lists := map[int]*statusGroup{}
	for _, described := range doorward.Problems() {
		status := front.Status(described.Code)
		routes = append(routes, route{front.ProblemPath(described.Code), sends(p.page(func(ref *reference) view {
			return view{File: "problem", Title: described.Title, Description: described.Help, Scripts: readingScripts, Body: problemPage{
				Problem: described, Status: status, Endpoints: ref.endpointsAnswering(described.Code), Body: encode(ref.problem(described.Code), ""),
			}}
		}))})
		if lists[status] == nil {
			lists[status] = &statusGroup{Status: status}
		}
		lists[status].Problems = append(lists[status].Problems, described)
	}
	var index []statusGroup
	for _, l := range sorted(lists) {
		index = append(index, *l)
	}
	return append(routes, route{"/problems", sends(p.page(func(*reference) view {
		return view{File: "problems", Title: "Problems", Description: "Every error that Doorward answers with.", Body: index}
	}))})
}

// endpointsAnswering returns the endpoints that name the code among their errors.
func (r *reference) endpointsAnswering(code doorward.Code) []endpoint {
	var all []endpoint
	for e := range r.endpoints() {
		if slices.ContainsFunc(e.Errors, func(f failure) bool {
			return slices.ContainsFunc(f.Codes, func(p doorward.Problem) bool { return p.Code == code })
		}) {
			all = append(all, e)
		}
	}
	return all
}

// problem is the body of an answer with the code, from an endpoint that names
// it if there is one.
func (r *reference) problem(code doorward.Code) pairs {
	instance := "/api/v2/"
	if from := r.endpointsAnswering(code); len(from) > 0 {
		instance = from[0].Path
	}
	return problem(code, r.Server, instance)
}

// originOf returns the origin of a server's address.
func originOf(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	return u.Scheme + "://" + u.Host
}

func problem(code doorward.Code, server, instance string) pairs {
	described := code.Problem()
	p := pairs{
		{"type", server + front.ProblemPath(code)},
		{"title", described.Title},
		{"status", front.Status(code)},
		{"detail", described.Help},
		{"instance", instance},
		{"code", code},
		{"requestId", "req_7d2c5tpae7kq2m5x3yh4n6rj7w"},
	}
	switch code {
	case doorward.CodeCrossOrigin:
		p[3].value = front.CrossOriginDetail("https://app.example.com", originOf(server))
	case doorward.CodeValidationFailed:
		fault := pairs{{"pointer", defaultExamples["pointer"]}, {"code", defaultExamples["code"]}, {"message", defaultExamples["message"]}}
		return append(p, pair{"errors", []any{fault}})
	case doorward.CodeInvitationPending:
		return append(p, pair{"invitationId", "inv_3yh4n6rj7wd2c5tpae7kq2m5x7"})
	}
	return p
}
