package adapters_test

import (
	"cmp"
	"context"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// What signs requests to Amazon Bedrock in the tests, and where Vertex is.
const (
	awsKeyID   = "the-id-of-the-tests"
	awsSecret  = "the-secret-of-the-tests"
	awsRegion  = "us-east-1"
	vertexPath = "/v1/projects/project/locations/eu"
)

// cloud is who serves the models of a dialect, if not the provider whose dialect it is.
type cloud struct {
	name      string
	rules     provider.Cloud
	base      string // of the address, behind the host
	path      string // of requests
	signs     bool   // requests have a signature, not a key
	recording string // empty = its requests are those of the dialect
	open      func(anthropic.Options) (llm.Model, error)
}

// label tells dialects apart.
func (d dialect) label() string { return cmp.Or(d.cloud.name, d.name) }

// clouds are those that serve Claude.
func clouds() []cloud {
	amazon := provider.Bedrock{Key: key, Region: awsRegion, AccessKeyID: awsKeyID, SecretKey: awsSecret}
	return []cloud{
		{name: "bedrock", rules: amazon, base: "/anthropic", path: "/anthropic/v1/messages",
			open: func(o anthropic.Options) (llm.Model, error) {
				return anthropic.NewOnBedrock(o, "", nil)
			}},
		{name: "bedrock, signed", rules: amazon, base: "/anthropic", path: "/anthropic/v1/messages", signs: true,
			open: func(o anthropic.Options) (llm.Model, error) {
				o.APIKey = ""
				return anthropic.NewOnBedrock(o, awsRegion, testCredentials(awsSecret))
			}},
		{name: "vertex", rules: provider.Vertex{Project: "project", Location: "eu", Token: key}, base: vertexPath, recording: "vertex",
			path: vertexPath + "/publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict",
			open: func(o anthropic.Options) (llm.Model, error) {
				return anthropic.NewOnVertex(o, oauth2.StaticTokenSource(&oauth2.Token{AccessToken: key}))
			}},
	}
}

// testCredentials are credentials of AWS with the secret.
func testCredentials(secret string) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: awsKeyID, SecretAccessKey: secret}, nil
	})
}

// cloudDialects is Anthropic's dialect at each cloud.
func cloudDialects() []dialect {
	var out []dialect
	for _, d := range ownDialects() {
		if d.name != "anthropic" {
			continue
		}
		for _, c := range clouds() {
			at := d
			at.cloud = c
			at.open = func(transport http.RoundTripper, with settings) (llm.Model, error) {
				return c.open(anthropic.Options{
					Model: d.model, BaseURL: or(with.baseURL, baseURL+c.base), APIKey: key, Transport: transport, Timeouts: with.timeouts,
					Info: llm.Info{MaxOutput: 8_192}, Thinking: with.thinking,
				})
			}
			out = append(out, at)
		}
	}
	return out
}

// newCloudThinker returns a model of a strict provider on a cloud.
func newCloudThinker(t *testing.T, c cloud, strict provider.Strict, model string, transport http.RoundTripper) *thinker {
	t.Helper()
	strict.Account, strict.Secret = "account", "secret"
	server := must.Get(provider.New(provider.Options{Strict: &strict, Cloud: c.rules}))(t)
	t.Cleanup(server.Close)
	k := newTalk(t, model)
	k.counts = server.Thoughts
	k.open = func(model string) (llm.Model, error) {
		return c.open(anthropic.Options{
			Model: model, BaseURL: server.URL + c.base, APIKey: key, Thinking: 2_048, Transport: transport, Info: llm.Info{MaxOutput: 8_192},
		})
	}
	return k
}

// Where the prompt has changed, Bedrock leaves the thoughts out and says so. Vertex, which is not
// told to, refuses the request; the second one has none.
func TestCloudChangedPrefix(t *testing.T) {
	t.Parallel()
	for _, c := range clouds() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			k := newCloudThinker(t, c, provider.Strict{}, "claude-opus-5-5", nil)
			k.req.ChecksPrefix = true
			k.ask("use a tool")
			k.req.System = []string{"Be brief."}
			k.add(llm.Message{Role: core.RoleUser, Content: "bye"})
			k.next()
			want := llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{llm.DropPrefix: 2}}
			counts := provider.Thoughts{Verified: 1, Dropped: 2}
			if c.name == "vertex" {
				want.Contract, counts = llm.PrefixRefuses, provider.Thoughts{Verified: 1, Refused: 1}
			}
			if got := k.counts(); got != counts || !reflect.DeepEqual(k.answer.Dropped, &want) {
				t.Errorf("got %+v, reported %+v, want %+v, %+v", got, k.answer.Dropped, counts, want)
			}
		})
	}
}

// Thoughts of another provider's are not sent to a cloud, nor those of a cloud elsewhere.
func TestCloudThoughtsStayThere(t *testing.T) {
	t.Parallel()
	amazon, google := clouds()[1], clouds()[2]
	there := newCloudThinker(t, amazon, provider.Strict{}, "claude-opus-5-5", nil)
	there.ask("use a tool")
	here := newCloudThinker(t, google, provider.Strict{}, "claude-opus-5-5", nil)
	here.req = there.req
	here.ask("bye")
	compare.Equal(t, "Bedrock's thoughts", provider.Thoughts{}, here.counts())
}

// A body that changes behind the signature is refused, so the signature is the last step.
func TestCloudSignatureCoversTheBody(t *testing.T) {
	t.Parallel()
	k := newCloudThinker(t, clouds()[1], provider.Strict{}, "claude-opus-5-5", changingTransport{})
	_, err := llmtest.Collect(t, k.opened(), llmtest.Ask("hi"))
	compare.True(t, llm.IsKind(err, llm.KindAuth) && strings.Contains(err.Error(), "does not match"), "got %v, want %s", err, llm.KindAuth)
}

// changingTransport adds a blank to bodies.
type changingTransport struct{}

func (changingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body, r.ContentLength = io.NopCloser(io.MultiReader(body, strings.NewReader(" "))), r.ContentLength+1
	return http.DefaultTransport.RoundTrip(r)
}
