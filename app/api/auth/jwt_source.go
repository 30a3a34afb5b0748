package auth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Bounds of one fetch.
const (
	fetchTime  = 5 * time.Second
	maxJWKS    = 512 << 10
	maxHeaders = 32 << 10
)

// source reads a JWKS.
type source func(ctx context.Context) ([]byte, error)

// fromURL returns a source that asks a server. The operator chose the address, so it may be
// private; but redirects are not followed, because then the server would choose.
func fromURL(address string) source {
	client := &http.Client{
		Timeout: fetchTime,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeaders,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return func(ctx context.Context) ([]byte, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		request.Header.Set("Accept", "application/jwk-set+json, application/json")
		request.Header.Set("User-Agent", "Bobbin")
		response, err := client.Do(request)
		if err != nil {
			return nil, withoutURL(err)
		}
		defer response.Body.Close()
		switch code := response.StatusCode; {
		case code >= 300 && code < 400:
			to := "another path"
			if u, err := url.Parse(response.Header.Get("Location")); err == nil && u.Host != "" {
				to = u.Host
			}
			return nil, fmt.Errorf("the server redirects to %s; set auth.jwt.jwks_url to the final URL", to)
		case code != http.StatusOK:
			return nil, fmt.Errorf("the server answered with status %d %s", code, http.StatusText(code))
		}
		return readAll(response.Body)
	}
}

// withoutURL returns the error of a request without its URL, which may contain a secret.
func withoutURL(err error) error {
	var of *url.Error
	if !errors.As(err, &of) {
		return err
	}
	if of.Timeout() {
		return fmt.Errorf("the server did not answer within %s", fetchTime)
	}
	return of.Err
}

func readAll(r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJWKS+1))
	switch {
	case err != nil:
		return nil, withoutURL(err)
	case len(data) > maxJWKS:
		return nil, fmt.Errorf("it is larger than %d KiB", maxJWKS>>10)
	}
	return data, nil
}
