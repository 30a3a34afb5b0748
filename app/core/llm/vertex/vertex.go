// Package vertex opens models of Claude on Google Vertex AI.
//
// Vertex speaks Anthropic's Messages API with server-sent events: package anthropic does everything
// but the address, which names the model, and the authorization with a token of Google's. The beta
// that leaves thoughts out is not known to work there; a prompt that is refused for its thoughts is
// sent again without them.
package vertex

import (
	"net/http"
	"net/url"

	"golang.org/x/oauth2"

	"bobbin/app/core/llm/anthropic"
)

// Provider is what this provider is called.
const Provider = "vertex"

// version is the version of the Messages API on Vertex.
const version = "vertex-2023-10-16"

// Options say which model is called, and how.
type Options struct {
	// The BaseURL is required and ends with the project and the location. An APIKey is sent
	// as a token.
	anthropic.Options

	// Tokens authorize requests without an APIKey; nil = Google's application default credentials.
	Tokens oauth2.TokenSource
}

// New returns the model that the options describe. Nothing is read or sent before the first Stream.
// Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*anthropic.Model, error) {
	tokens := options.Tokens
	switch {
	case options.APIKey != "":
		tokens = oauth2.StaticTokenSource(&oauth2.Token{AccessToken: options.APIKey})
	case tokens == nil:
		tokens = oauth2.ReuseTokenSource(nil, defaultTokens{}) // looked for when the first request is sent
	}
	return anthropic.NewOnCloud(options.Options, anthropic.Cloud{
		Provider: Provider, Version: version,
		Path: "publishers/anthropic/models/" + url.PathEscape(options.Model) + ":streamRawPredict",
		Authorize: func(r *http.Request) error {
			token, err := tokens.Token()
			if r.Context().Err() != nil {
				return r.Context().Err()
			}
			if err != nil {
				return toError(err)
			}
			token.SetAuthHeader(r)
			return nil
		},
	})
}
