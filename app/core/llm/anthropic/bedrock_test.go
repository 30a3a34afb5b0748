package anthropic_test

import (
	"context"
	"errors"
	"fmt"
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
