package bedrock_test

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
	"bobbin/app/core/llm/bedrock"
	"bobbin/tests/must"
)

const answer = `{"type":"message","role":"assistant","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`

// serve returns the address of a server that answers, and the headers of the last request there.
func serve(t *testing.T) (url string, last *http.Header) {
	t.Helper()
	last = new(http.Header)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*last = r.Header.Clone()
		fmt.Fprint(w, answer)
	}))
	t.Cleanup(web.Close)
	return web.URL + "/anthropic", last
}

func call(ctx context.Context, t *testing.T, options bedrock.Options) (llm.Response, error) {
	t.Helper()
	options.Model = "anthropic.claude-opus-5-5"
	m := must.Get(bedrock.New(options))(t)
	return llm.Collect(m.Stream(ctx, llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}}), nil)
}

// Thoughts are Bedrock's own, and what is not known to work there is off.
func TestInfo(t *testing.T) {
	t.Parallel()
	m := must.Get(bedrock.New(bedrock.Options{Options: anthropic.Options{Model: "anthropic.claude-opus-5-5", BaseURL: "http://provider.test"}, Region: "us-east-1"}))(t)
	info := m.Info()
	if info.Provider != "bedrock" || info.ThoughtOrigin != "bedrock/anthropic.claude-opus-5-5" {
		t.Errorf("got provider %q, origin %q", info.Provider, info.ThoughtOrigin)
	}
	if info.SystemMessages || info.Compacts {
		t.Errorf("got %+v, want neither system messages nor compactions", info)
	}
	if _, err := bedrock.New(bedrock.Options{}); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("got %v for no model, want core.ErrInvalid", err)
	}
}

// Without an API key the credentials that AWS's tools would find sign each request.
func TestDefaultCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "credentials")
	must.Do(t, os.WriteFile(file, []byte("[house]\naws_access_key_id = id-of-the-file\naws_secret_access_key = secret-of-the-file\naws_session_token = session\n"), 0o600))
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_CONFIG_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	t.Setenv("AWS_PROFILE", "house")
	url, last := serve(t)
	res, err := call(t.Context(), t, bedrock.Options{Options: anthropic.Options{BaseURL: url}, Region: "us-east-1"})
	if err != nil || res.Text != "ok" {
		t.Fatalf("got %q, %v", res.Text, err)
	}
	if got := last.Get("Authorization"); !strings.Contains(got, "Credential=id-of-the-file/") || !strings.Contains(got, "/us-east-1/bedrock-mantle/aws4_request") {
		t.Errorf("got %q, want a signature of the profile", got)
	}
	if last.Get("X-Amz-Security-Token") != "session" || last.Get("X-Api-Key") != "" {
		t.Errorf("got %v, want the session and no key", *last)
	}
}

// A machine without credentials is told so, and nothing is sent or repeated.
func TestNoCredentials(t *testing.T) {
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	url, last := serve(t)
	_, err := call(t.Context(), t, bedrock.Options{Options: anthropic.Options{BaseURL: url}, Region: "us-east-1"})
	if !llm.IsKind(err, llm.KindAuth) || !strings.Contains(err.Error(), "no credentials of AWS") || len(*last) > 0 {
		t.Errorf("got %v and %v, want no request", err, *last)
	}
	t.Setenv("AWS_PROFILE", "house")
	if _, err := call(t.Context(), t, bedrock.Options{Options: anthropic.Options{BaseURL: url}, Region: "us-east-1"}); !llm.IsKind(err, llm.KindAuth) {
		t.Errorf("got %v for a profile that does not exist, want %s", err, llm.KindAuth)
	}
}

// A call that is canceled while credentials are fetched was canceled.
func TestCanceledForCredentials(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	url, _ := serve(t)
	slow := aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		cancel()
		<-ctx.Done()
		return aws.Credentials{}, ctx.Err()
	})
	_, err := call(ctx, t, bedrock.Options{Options: anthropic.Options{BaseURL: url}, Region: "us-east-1", Credentials: slow})
	if !llm.IsKind(err, llm.KindCanceled) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %s", err, llm.KindCanceled)
	}
}

// Neither a key nor a secret is in an error or a printed option.
func TestSecretsAreNotShown(t *testing.T) {
	t.Parallel()
	options := bedrock.Options{Options: anthropic.Options{Model: "m", APIKey: "the-secret", BaseURL: "http://u:the-secret@provider.test"}}
	if got := fmt.Sprintf("%v %+v", options, options); strings.Contains(got, "the-secret") {
		t.Errorf("got %s, want it without the key", got)
	}
}
