package anthropic_test

import (
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
