package vertex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

const (
	// scope is what the tokens are for.
	scope = "https://www.googleapis.com/auth/cloud-platform"
	// tokenTime limits each request for a token: Google's library does not end one with the call
	// that needs it.
	tokenTime = 10 * time.Second
	// maxReport is how much of a refusal is shown, in characters.
	maxReport = 200
)

// errNotFound is that there are no credentials.
var errNotFound = errors.New("there are no application default credentials")

// toError returns the failure to get a token. What a repetition may mend is returned as it is: the
// provider counts as not reached.
func toError(err error) error {
	var refused *oauth2.RetrieveError
	switch {
	case errors.Is(err, errNotFound):
	case errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
		err = fmt.Errorf("the credentials are refused: %s", core.Clip(string(refused.Body), maxReport))
	default:
		return err
	}
	return &llm.Error{Kind: llm.KindAuth, Provider: Provider, Message: fmt.Sprintf("no token of Google Cloud: %v", err), Err: err}
}

// defaultTokens are the tokens of the application default credentials: a file that
// GOOGLE_APPLICATION_CREDENTIALS names, that of gcloud, or those of the machine.
type defaultTokens struct{}

// Token returns a new token.
func (defaultTokens) Token() (*oauth2.Token, error) {
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Timeout: tokenTime})
	credentials, err := google.FindDefaultCredentials(ctx, scope)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNotFound, err)
	}
	return credentials.TokenSource.Token()
}
