package anthropic

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// vertexVersion is the version of the Messages API on Vertex.
const vertexVersion = "vertex-2023-10-16"

// NewOnVertex is New for a model on Google Vertex AI, whose address names the model and whose authorization
// is a token of Google's. The beta that leaves thoughts out is not known to work there; a prompt that is
// refused for its thoughts is sent again without them. The BaseURL is required and ends with the project and
// the location. An APIKey is sent as a token; without one, nil tokens are Google's application default credentials.
func NewOnVertex(options Options, tokens oauth2.TokenSource) (*Model, error) {
	if tokens == nil {
		tokens = oauth2.ReuseTokenSource(nil, defaultTokens{}) // looked for when the first request is sent
	}
	return NewOnCloud(options, Cloud{
		Provider: llm.ProviderVertex, Version: vertexVersion,
		Path: "publishers/anthropic/models/" + url.PathEscape(options.Model) + ":streamRawPredict",
		Authorize: func(r *http.Request) error {
			token, err := tokens.Token()
			if r.Context().Err() != nil {
				return r.Context().Err()
			}
			if err != nil {
				return tokenError(err)
			}
			token.SetAuthHeader(r)
			return nil
		},
	})
}

const (
	// cloudScope is what the tokens are for.
	cloudScope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTime limits each request for a token: Google's library does not end one with the call
	// that needs it.
	tokenTime = 10 * time.Second
	// maxReport is how much of a refusal is shown, in characters.
	maxReport = 200
)

// errNoCredentials means that there are no credentials.
var errNoCredentials = errors.New("there are no application default credentials")

// tokenError returns the failure to get a token. What a repetition may mend is returned as it is: the
// provider counts as not reached.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case errors.Is(err, errNoCredentials):
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		err = fmt.Errorf("the credentials are refused: %s", core.Clip(string(refused.Body), maxReport))
	default:
		return err
	}
	return &llm.Error{Kind: llm.KindAuth, Provider: llm.ProviderVertex, Message: fmt.Sprintf("no token of Google Cloud: %v", err), Err: err}
}

// defaultTokens are the tokens of the application default credentials: a file that
// GOOGLE_APPLICATION_CREDENTIALS names, that of gcloud, or those of the machine.
type defaultTokens struct{}

// Token returns a new token.
func (defaultTokens) Token() (*oauth2.Token, error) {
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTime})
	credentials, err := google.FindDefaultCredentials(ctx, cloudScope)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoCredentials, err)
	}
	return credentials.TokenSource.Token()
}
