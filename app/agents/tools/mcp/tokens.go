package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"bobbin/app/core"
)

const (
	tokenTime    = 10 * time.Second // how long a token server may take
	refusalPause = 10 * time.Second // between two replacements of tokens that are refused
)

// tokens are the access tokens of a server. One is kept until it expires or is refused. Safe for
// concurrent use.
type tokens struct {
	config   clientcredentials.Config
	client   *http.Client
	lock     chan struct{} // holds a value while somebody uses the fields below
	token    *oauth2.Token
	current  atomic.Pointer[string] // the access token, readable without the lock; nil = there was none
	replaced time.Time              // when a token was last replaced because it was refused
}

// errRefused means that a server refuses tokens that were just issued: new ones would not help.
var errRefused = errors.New("the server refuses the tokens that the token server issues")

// get returns a token that is valid and not the refused one; empty = none was refused. errRefused
// if one was replaced just now.
func (k *tokens) get(ctx context.Context, refused string) (string, error) {
	select {
	case k.lock <- struct{}{}:
		defer func() { <-k.lock }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if k.token.Valid() && k.token.AccessToken != refused {
		return k.token.AccessToken, nil
	}
	if refused != "" && k.token.Valid() {
		if time.Since(k.replaced) < refusalPause {
			return "", errRefused
		}
		k.replaced = time.Now()
	}
	limited, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, k.client), tokenTime)
	defer cancel()
	token, err := k.config.Token(limited)
	if err != nil {
		return "", fmt.Errorf("no access token: the token server %w", explainToken(limited, err))
	}
	k.token = token
	k.current.Store(&token.AccessToken)
	return token.AccessToken, nil
}

// latest returns the access token that was issued last; empty = there was none.
func (k *tokens) latest() string {
	if token := k.current.Load(); token != nil {
		return *token
	}
	return ""
}

// explainToken returns why there is no token. It has nothing of an answer but its error code.
func explainToken(ctx context.Context, err error) error {
	var refused *oauth2.RetrieveError
	var failed *url.Error
	switch {
	case errors.As(err, &refused):
		return fmt.Errorf("answers %d %s", refused.Response.StatusCode, core.CleanText(core.Clip(refused.ErrorCode, 100)))
	case ctx.Err() != nil:
		return fmt.Errorf("does not answer within %s", tokenTime)
	case errors.As(err, &failed):
		return fmt.Errorf("cannot be reached: %w", explainAddress(failed.Err))
	}
	return errors.New("answers something that is no token")
}
