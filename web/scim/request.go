package scim

import (
	"context"
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app/directory"
	"github.com/doorward/doorward/internal/scim"
	"github.com/doorward/doorward/internal/strictjson"
	"github.com/doorward/doorward/web/front"
)

// listSchema is that of lists (RFC 7644, section 3.4.2).
const listSchema = "urn:ietf:params:scim:api:messages:2.0:ListResponse"

// pageMax is how many resources a page of a list has at most, which is also the default.
const pageMax = 200

// request is a request for people or groups. Its query has been read before anything is done.
type request struct {
	*front.Call
	query map[string]string
	sent  *[]byte // the body, once it was read
}

// failed is the error of a request whose body has been read.
type failed struct {
	error
	sent []byte
}

// Unwrap returns the error.
func (f failed) Unwrap() error { return f.error }

// located is a resource with an address, which a 201 names.
type located interface{ location() string }

// answer returns the endpoint that answers what do returns, a resource or a list, with the attributes that the query asks
// for; nil: 204.
func answer(do func(context.Context, request) (any, error)) func(context.Context, *front.Call) error {
	return func(ctx context.Context, c *front.Call) error {
		if c.R.Method != http.MethodGet && c.R.Method != http.MethodHead {
			if err := directory.MayWrite(c.Caller); err != nil {
				return err
			}
		}
		query, err := parameters(c)
		if err != nil && (c.R.Method == http.MethodGet || c.R.Method == http.MethodPost) { // a query doesn't keep anybody in
			return err
		}
		var sent []byte
		found, err := do(ctx, request{c, query, &sent})
		if err != nil {
			return failed{err, sent}
		}
		if found == nil {
			c.W.WriteHeader(http.StatusNoContent)
			return nil
		}
		status := http.StatusOK
		if made, is := found.(located); is && c.R.Method == http.MethodPost {
			c.W.Header().Set("Location", made.location())
			status = http.StatusCreated
		}
		chosen, err := chooseAll(found, query)
		if err != nil {
			return err
		}
		c.AnswerAs(status, mediaType, chosen)
		return nil
	}
}

// filter returns the filter of a list; nil: none.
func (r request) filter(of scim.Resource) (scim.Filter, error) {
	text, asked := r.query["filter"]
	if !asked {
		return nil, nil
	}
	return scim.ParseFilter(of, text)
}

// parsed reads the body.
func parsed[T any](r request, parse func([]byte) (T, error)) (said T, err error) {
	text, err := body(r.Call)
	*r.sent = text
	if err != nil {
		return said, err
	}
	return parse(text)
}

// named reads the id in the path, and the body.
func named[T any](r request, prefix string, parse func([]byte) (T, error)) (id string, said T, err error) {
	if id, err = r.ID("id", prefix); err != nil {
		return "", said, err
	}
	said, err = parsed(r, parse)
	return id, said, err
}

// list is a page of a list.
type list struct {
	Schemas      []string `json:"schemas"`
	TotalResults int      `json:"totalResults"`
	StartIndex   int      `json:"startIndex"`
	ItemsPerPage int      `json:"itemsPerPage"`
	Resources    []any    `json:"Resources"`
}

// listOf returns a page of resources, which begins at start.
func listOf[T, V any](r request, total, start int, all []T, view func(*front.Call, T) V) list {
	l := list{Schemas: []string{listSchema}, TotalResults: total, StartIndex: start, ItemsPerPage: len(all), Resources: []any{}}
	for _, one := range all {
		l.Resources = append(l.Resources, view(r.Call, one))
	}
	return l
}

// window returns which part of a list is asked for. Faults of it are no errors (RFC 7644, section 3.4.2.4).
func window(query map[string]string) (start, count int) {
	start, count = 1, pageMax
	if n, err := strconv.Atoi(query["startindex"]); err == nil {
		start = min(max(n, 1), 1<<30)
	}
	if n, err := strconv.Atoi(query["count"]); err == nil {
		count = min(max(n, 0), pageMax)
	}
	return start, count
}

// chooseAll is choose for a resource, or for each one of a list.
func chooseAll(found any, query map[string]string) (any, error) {
	l, is := found.(list)
	if !is {
		return choose(found, query)
	}
	for i, one := range l.Resources {
		chosen, err := choose(one, query)
		if err != nil {
			return nil, err
		}
		l.Resources[i] = chosen
	}
	return l, nil
}

// choose returns the attributes of the resource that the query asks for (RFC 7644, section 3.9): id and schemas always.
func choose(resource any, query map[string]string) (any, error) {
	only, without := names(query["attributes"]), names(query["excludedattributes"])
	if len(only) == 0 && len(without) == 0 {
		return resource, nil
	}
	text, err := json.Marshal(resource)
	if err != nil {
		return nil, err
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	for name := range all {
		lower := strings.ToLower(name)
		if lower != "id" && lower != "schemas" && (len(only) > 0 && !only[lower] || without[lower]) {
			delete(all, name)
		}
	}
	return all, nil
}

// names returns the attributes that a parameter lists, in lower case, without the URN of the core schema, and without
// parts: who asks for one gets the whole attribute.
func names(parameter string) map[string]bool {
	all := map[string]bool{}
	for name := range strings.SplitSeq(parameter, ",") {
		lower := strings.ToLower(strings.TrimSpace(name))
		for _, own := range []string{scim.UserSchema, scim.GroupSchema} {
			lower = strings.TrimPrefix(lower, strings.ToLower(own)+":")
		}
		for _, extension := range []string{scim.EnterpriseSchema, stateSchema} {
			if strings.HasPrefix(lower, strings.ToLower(extension)) {
				lower = strings.ToLower(extension)
			}
		}
		if !strings.HasPrefix(lower, "urn:") {
			lower, _, _ = strings.Cut(lower, ".")
		}
		if lower != "" {
			all[lower] = true
		}
	}
	return all
}

// body returns the body of a request, whose form is checked: size, media type, encoding, depth, repeated names.
func body(c *front.Call) ([]byte, error) {
	text, err := c.Body(maxBody)
	if err != nil {
		return nil, err
	}
	if !isJSON(c.R.Header) {
		return nil, doorward.Fail(doorward.CodeUnsupportedMediaType, "Send the body as \"Content-Type: application/scim+json\", in UTF-8 and without a Content-Encoding.")
	}
	_, err = strictjson.DecodeOpen[struct{}](text)
	return text, front.Malformed(err)
}

func isJSON(h http.Header) bool {
	types := h.Values("Content-Type")
	switch {
	case len(h.Values("Content-Encoding")) > 0 || len(types) > 1:
		return false
	case len(types) == 0 || types[0] == "":
		return true
	}
	media, params, err := mime.ParseMediaType(types[0])
	charset, hasCharset := params["charset"]
	return err == nil && (media == mediaType || media == "application/json") && (!hasCharset || strings.EqualFold(charset, "utf-8"))
}

// parameters returns the query, in which each name counts once, in any letter case. Unknown names are read over.
func parameters(c *front.Call) (map[string]string, error) {
	values, err := url.ParseQuery(strings.TrimRight(c.R.URL.RawQuery, "?&"))
	if err != nil {
		return nil, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidFilter, Detail: "Encode the query as application/x-www-form-urlencoded."}
	}
	all := map[string]string{}
	for name, sent := range values {
		lower := strings.ToLower(name)
		if _, twice := all[lower]; twice || len(sent) > 1 {
			return nil, &scim.Error{Status: http.StatusBadRequest, Type: scim.InvalidFilter, Detail: "Send each parameter of the query once."}
		}
		all[lower] = sent[0]
	}
	return all, nil
}
