package anthropic_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// cloud is Vertex, and the server of Google's tokens.
type cloud struct {
	url      string
	status   int    // of tokens
	token    string // the answer to a request for one
	path     string
	header   http.Header
	asked    int // for tokens
	requests int
}

func serveVertex(t *testing.T) *cloud {
	t.Helper()
	c := &cloud{status: http.StatusOK, token: `{"access_token":"the-token","expires_in":3600,"token_type":"Bearer"}`}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			c.asked++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.token)
			return
		}
		c.requests++
		c.path, c.header = r.URL.Path, r.Header.Clone()
		fmt.Fprint(w, fine)
	}))
	t.Cleanup(web.Close)
	c.url = web.URL
	return c
}

// credentials makes a file of a service account's key, for the application default credentials.
func (c *cloud) credentials(t *testing.T) {
	t.Helper()
	private := must.Get(rsa.GenerateKey(rand.Reader, 2048))(t)
	block := &pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)}
	raw, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "bobbin@project.test", "private_key": string(pem.EncodeToMemory(block)), "token_uri": c.url + "/token",
	})
	must.Do(t, err)
	file := filepath.Join(t.TempDir(), "credentials.json")
	must.Do(t, os.WriteFile(file, raw, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

func (c *cloud) open(t *testing.T, options anthropic.Options) *anthropic.Model {
	t.Helper()
	options.Model, options.BaseURL = "claude-opus-5-5@20260901", c.url+"/v1/projects/p/locations/eu"
	return must.Get(anthropic.NewOnVertex(options, nil))(t)
}

func callVertex(t *testing.T, m llm.Model) (llm.Response, error) {
	t.Helper()
	return llm.Collect(m.Stream(t.Context(), llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}}), nil)
}

// Thoughts are the cloud's own, and what is not known to work there is off.
func TestInfoOnClouds(t *testing.T) {
	t.Parallel()
	o := anthropic.Options{Model: "claude-opus-5-5", BaseURL: "http://provider.test"}
	for provider, m := range map[string]*anthropic.Model{
		"bedrock": must.Get(anthropic.NewOnBedrock(o, "us-east-1", nil))(t),
		"vertex":  must.Get(anthropic.NewOnVertex(o, nil))(t),
	} {
		if info := m.Info(); info.Provider != provider || info.ThoughtOrigin != provider+"/claude-opus-5-5" || info.SystemMessages || info.Compacts {
			t.Errorf("%s: got %+v, want neither system messages nor compactions", provider, info)
		}
	}
	_, err := anthropic.NewOnBedrock(anthropic.Options{}, "", nil)
	_, err2 := anthropic.NewOnVertex(anthropic.Options{}, nil)
	compare.True(t, errors.Is(err, core.ErrInvalid) && errors.Is(err2, core.ErrInvalid), "got %v and %v for no model, want core.ErrInvalid", err, err2)
}

// The default credentials give a token, which is kept; the path names the model.
func TestVertexCredentials(t *testing.T) {
	c := serveVertex(t)
	c.credentials(t)
	m := c.open(t, anthropic.Options{})
	for range 2 {
		if res, err := callVertex(t, m); err != nil || res.Text != "ok" {
			t.Fatalf("got %q, %v", res.Text, err)
		}
	}
	got := c.header.Get("Authorization")
	compare.Equal(t, "authorization, requests for tokens", []any{"Bearer the-token", 1}, []any{got, c.asked})
	m = c.open(t, anthropic.Options{APIKey: "the-key"}) // such as a proxy's
	if _, err := callVertex(t, m); err != nil || c.header.Get("Authorization") != "Bearer the-key" || c.asked != 1 {
		t.Errorf("got %q, %v, want the key of the settings", c.header.Get("Authorization"), err)
	}
	compare.Equal(t, "the path", "/v1/projects/p/locations/eu/publishers/anthropic/models/claude-opus-5-5@20260901:streamRawPredict", c.path)
}

// Credentials that are refused or missing end a call; a server of tokens that is broken may recover.
func TestVertexTokenFailures(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		file   string // other credentials
		kind   llm.ErrorKind
		says   string
	}{
		"refused":     {status: http.StatusBadRequest, kind: llm.KindAuth, says: "invalid_grant"},
		"broken":      {status: http.StatusServiceUnavailable, kind: llm.KindNetwork},
		"a file gone": {status: http.StatusOK, file: "/nonexistent/credentials.json", kind: llm.KindAuth, says: "application default credentials"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serveVertex(t)
			c.credentials(t)
			c.status, c.token = tt.status, `{"error":"invalid_grant","error_description":"expired"}`
			if tt.file != "" {
				t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", tt.file)
			}
			_, err := callVertex(t, c.open(t, anthropic.Options{}))
			if !llm.IsKind(err, tt.kind) || !strings.Contains(err.Error(), tt.says) || c.requests > 0 {
				t.Errorf("got %v after %d requests, want %s that says %q", err, c.requests, tt.kind, tt.says)
			}
		})
	}
}

// serveBedrock returns the address of a server that answers, and the headers of the last request there.
func serveBedrock(t *testing.T) (url string, last *http.Header) {
	t.Helper()
	last = new(http.Header)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = r.Header.Clone()
		fmt.Fprint(w, fine)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/anthropic", last
}

func callBedrock(ctx context.Context, t *testing.T, url string, credentials aws.CredentialsProvider) (llm.Response, error) {
	t.Helper()
	m := must.Get(anthropic.NewOnBedrock(anthropic.Options{BaseURL: url, Model: "anthropic.claude-opus-5-5"}, "us-east-1", credentials))(t)
	return llm.Collect(m.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}}), nil)
}

// Without an API key the credentials that AWS's tools would find sign each request.
func TestBedrockCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	must.Do(t, os.WriteFile(file, []byte("[house]\naws_access_key_id = id-of-the-file\naws_secret_access_key = secret-of-the-file\naws_session_token = session\n"), 0o600))
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_PROFILE", "house")
	url, last := serveBedrock(t)
	res, err := callBedrock(t.Context(), t, url, nil)
	must.True(t, err == nil && res.Text == "ok", "got %q, %v", res.Text, err)
	got := last.Get("Authorization")
	compare.True(t, strings.Contains(got, "Credential=id-of-the-file/") && strings.Contains(got, "/us-east-1/bedrock-mantle/aws4_request"), "got %q, want a signature of the profile", got)
	if last.Get("X-Amz-Security-Token") != "session" || last.Get("X-Api-Key") != "" {
		t.Errorf("got %v, want the session and no key", *last)
	}
}

// A machine without credentials is told so, and nothing is sent or repeated.
func TestNoBedrockCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	url, last := serveBedrock(t)
	_, err := callBedrock(t.Context(), t, url, nil)
	if !llm.IsKind(err, llm.KindAuth) || !strings.Contains(err.Error(), "no credentials of AWS") || len(*last) > 0 {
		t.Errorf("got %v and %v, want no request", err, *last)
	}
	t.Setenv("AWS_PROFILE", "house")
	if _, err := callBedrock(t.Context(), t, url, nil); !llm.IsKind(err, llm.KindAuth) {
		t.Errorf("got %v for a profile that does not exist, want %s", err, llm.KindAuth)
	}
}

// A call that is canceled while credentials are fetched was canceled.
func TestBedrockCanceledForCredentials(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := serveBedrock(t)
	slow := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		cancel()
		<-ctx.Done()
		return aws.Credentials{}, ctx.Err()
	})
	_, err := callBedrock(ctx, t, url, slow)
	compare.True(t, llm.IsKind(err, llm.KindCanceled) && errors.Is(err, context.Canceled), "got %v, want %s", err, llm.KindCanceled)
}
