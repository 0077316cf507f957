package edge

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/doorward/doorward"
	"github.com/doorward/doorward/app"
	"github.com/doorward/doorward/app/assertion"
	"github.com/doorward/doorward/internal/jwt"
	"github.com/doorward/doorward/web/front"
)

// assertions serves signed identity to callers of services that are behind no gateway, and the
// keys that verify it.
type assertions struct{ app *app.App }

func assertionRoutes(a *app.App) []front.Route {
	s := &assertions{a}
	return []front.Route{
		front.On("POST /api/v2/auth/token", front.SignedInOrKey(), front.JSON(http.StatusOK, s.token), docToken),
		front.On("GET /.well-known/jwks.json", front.Public(), front.JSON(http.StatusOK, s.jwks), docJWKS).Check(),
	}
}

type tokenInput struct {
	Audience string `json:"audience" example:"https://messages.example.com" doc:"The service that the assertion is for, one of --assertion-audience"`
}

type tokenAnswer struct {
	Assertion string    `json:"assertion" doc:"A JSON Web Token, signed with ES256"`
	ExpiresAt time.Time `json:"expiresAt" doc:"Until when a service accepts it"`
}

var docToken = front.Doc{
	ID: "createToken", Tag: "Access", Summary: "Get an assertion of one's own identity",
	WhilePaused: true,
	Description: "For callers of a service that is behind no gateway. The assertion is the one that a check answers in `X-Auth-Assertion`: good for 20 to 30 seconds, for one audience, and not a credential of Doorward.",
	Errors:      []doorward.Code{doorward.CodeMasterKeyMissing},
}

func (s *assertions) token(ctx context.Context, c *front.Call, in tokenInput) (tokenAnswer, error) {
	if in.Audience == "" {
		return tokenAnswer{}, doorward.InvalidFields(doorward.FieldError{Pointer: "/audience", Code: "required", Message: "Name the service that the assertion is for."})
	}
	index, found := s.app.Assertions.Find(in.Audience)
	if !found {
		return tokenAnswer{}, doorward.InvalidFields(doorward.FieldError{Pointer: "/audience", Code: "invalid", Message: "The server doesn't sign for this audience. Use one of --assertion-audience."})
	}
	token, err := s.app.Assertions.TokenFor(ctx, &c.Caller.Principal, index)
	return tokenAnswer{token.Text, token.ExpiresAt}, err
}

var docJWKS = front.Doc{
	ID: "jwks", Tag: "Access", Summary: "The keys that verify assertions",
	Description: "A JSON Web Key Set (RFC 7517) with the key that signs now, the next one, and the last one for a day. Keep it for up to 300 seconds, and ask again for a `kid` that isn't in it. Empty without `--assertion-audience`.",
	Errors:      []doorward.Code{doorward.CodeMasterKeyMissing},
}

type keySet struct {
	Keys []jwt.Public `json:"keys" nullable:"false"`
}

func (s *assertions) jwks(ctx context.Context, c *front.Call, _ front.None) (keySet, error) {
	all, err := s.app.Assertions.Published(ctx)
	if err != nil {
		return keySet{}, err
	}
	c.W.Header().Set("Cache-Control", "max-age="+strconv.Itoa(int(assertion.KeySetLife/time.Second)))
	return keySet{append([]jwt.Public{}, all...)}, nil // never nil, which would be null in JSON
}
