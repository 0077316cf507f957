package front

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"reflect"

	"github.com/doorward/doorward"
)

// OAuthError is the answer to a faulty request of another server, where a specification of the OAuth family defines it
// (RFC 6749, section 5.2).
type OAuthError struct {
	Error       string `json:"error" enum:"invalid_request"`
	Description string `json:"error_description" doc:"What is wrong"`
}

// InvalidRequest is the error of an endpoint of Form for a request that is answered with an OAuthError.
type InvalidRequest struct {
	Description string // a sentence in ASCII, without quotes (RFC 6749, section 5.2)
	Err         error  // for the log
}

// Error says what is wrong.
func (e *InvalidRequest) Error() string { return e.Description }

// Unwrap returns the cause.
func (e *InvalidRequest) Unwrap() error { return e.Err }

// formType is the media type of a form.
const formType = "application/x-www-form-urlencoded"

// Form returns the endpoint that takes a form with the fields, of at most maxBytes, from another server, calls fn with
// it and answers with the status. As OAuth has it, fields of other names are ignored. Forms that can't be read, and
// errors of the type *InvalidRequest, are answered 400 with an OAuthError.
func Form(status, maxBytes int, fields []Parameter, fn func(ctx context.Context, c *Call, form url.Values) error) Endpoint {
	e := Endpoint{Status: status, Media: []string{formType}, Fields: fields, Fault: reflect.TypeFor[OAuthError]()}
	e.serve = func(ctx context.Context, c *Call) error {
		form, err := c.FormUpTo(maxBytes)
		if err == nil && len(c.R.Header.Values("Content-Encoding")) > 0 {
			err = doorward.Fail(doorward.CodeUnsupportedMediaType, "Send the form without a Content-Encoding.")
		}
		if err == nil {
			err = fn(ctx, c, form)
		}
		if doorward.HasCode(err, doorward.CodeInvalidBody) {
			err = &InvalidRequest{Description: "The form can not be read.", Err: err}
		}
		var fault *InvalidRequest
		if errors.As(err, &fault) {
			c.Refuse(fault.Err)
			c.site.write(c.W, http.StatusBadRequest, "application/json", OAuthError{"invalid_request", fault.Description})
			return nil
		}
		if err == nil {
			c.W.WriteHeader(e.Status)
		}
		return err
	}
	return e
}

// Bearer returns the only bearer credential in the header Authorization of the request; empty: there is none, or there are
// several. Unlike the caller's own credentials it may be a token of another server.
func (c *Call) Bearer() string {
	sent := c.R.Header["Authorization"]
	if len(sent) != 1 {
		return ""
	}
	text, _ := bearerIn(sent[0])
	return text
}
