package provider_test

import (
	"net/http"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/bedrock"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/vertex"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"bobbin/tests/provider"
)

// amazon returns the rules of Bedrock.
func amazon() provider.Bedrock {
	return provider.Bedrock{Key: "key", Region: "us-east-1", AccessKeyID: "id", SecretKey: "secret"}
}

// newCloud returns the address of a strict provider on a cloud.
func newCloud(t *testing.T, cloud provider.Cloud) string {
	t.Helper()
	strict := account("a")
	server, err := provider.New(provider.Options{Strict: &strict, Cloud: cloud})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server.URL
}

// talkBySDK sends a question with Anthropic's own client, as one answer and as a stream.
func talkBySDK(t *testing.T, messages *sdk.MessageService, more ...option.RequestOption) error {
	t.Helper()
	more = append(more, option.WithMaxRetries(0))
	params := sdk.MessageNewParams{
		Model: "claude-opus-5-5", MaxTokens: 1_000, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("hello"))},
	}
	whole, err := messages.New(t.Context(), params, more...)
	if err != nil {
		return err
	}
	var streamed sdk.Message
	stream := messages.NewStreaming(t.Context(), params, more...)
	for stream.Next() {
		if err := streamed.Accumulate(stream.Current()); err != nil {
			return err
		}
	}
	for name, message := range map[string]sdk.Message{"whole": *whole, "stream": streamed} {
		if got := message.Content[len(message.Content)-1].Text; got != "answer to: hello" {
			t.Errorf("%s: got %q", name, got)
		}
	}
	return stream.Err()
}

// The clients of anthropic-sdk-go for the clouds keep the rules of the stand-ins.
func TestCloudSDKs(t *testing.T) {
	t.Parallel()
	address := newCloud(t, amazon()) + "/anthropic"
	for name, config := range map[string]bedrock.MantleClientConfig{
		"key":    {APIKey: "key", BaseURL: address},
		"signed": {AWSAccessKey: "id", AWSSecretAccessKey: "secret", AWSRegion: "us-east-1", BaseURL: address},
	} {
		client, err := bedrock.NewMantleClient(t.Context(), config)
		if err != nil {
			t.Fatal(err)
		}
		if err := talkBySDK(t, &client.Messages); err != nil {
			t.Errorf("bedrock, %s: %v", name, err)
		}
	}
	google := &google.Credentials{TokenSource: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: "token"})}
	client := sdk.NewClient(vertex.WithCredentials(t.Context(), "eu", "project", google),
		option.WithBaseURL(newCloud(t, provider.Vertex{Project: "project", Location: "eu", Token: "token"})))
	if err := talkBySDK(t, &client.Messages); err != nil {
		t.Errorf("vertex: %v", err)
	}
}

// The stand-in of Bedrock refuses what is signed for another place, with another secret, or was
// changed afterwards.
func TestCloudSignatures(t *testing.T) {
	t.Parallel()
	signed := bedrock.MantleClientConfig{AWSAccessKey: "id", AWSSecretAccessKey: "secret", AWSRegion: "us-east-1"}
	for name, tt := range map[string]struct {
		config func(*bedrock.MantleClientConfig)
		change func(*http.Request)
		want   string
	}{
		"another secret": {config: func(c *bedrock.MantleClientConfig) { c.AWSSecretAccessKey = "other" }, want: "does not match"},
		"another region": {config: func(c *bedrock.MantleClientConfig) { c.AWSRegion = "us-east-2" }, want: "us-east-1"},
		"another key":    {config: func(c *bedrock.MantleClientConfig) { c.APIKey = "other" }, want: "API key"},
		"a later header": {change: func(r *http.Request) { r.Header.Set("Anthropic-Beta", "b") }, want: "anthropic-beta is not signed"},
		"a later body":   {change: func(r *http.Request) { r.Body = http.NoBody; r.ContentLength = 0 }, want: "does not match"},
		"a later path":   {change: func(r *http.Request) { r.URL.RawQuery = "x=1" }, want: "does not match"},
		"an old one":     {change: func(r *http.Request) { r.Header.Set("X-Amz-Date", "20200101T000000Z") }, want: "expired"},
		"none":           {change: func(r *http.Request) { r.Header.Del("Authorization") }, want: "not signed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := signed
			config.BaseURL = newCloud(t, amazon()) + "/anthropic"
			if tt.config != nil {
				tt.config(&config)
			}
			client, err := bedrock.NewMantleClient(t.Context(), config)
			if err != nil {
				t.Fatal(err)
			}
			err = talkBySDK(t, &client.Messages, option.WithMiddleware(func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
				if tt.change != nil {
					tt.change(r)
				}
				return next(r)
			}))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want a refusal that says %q", err, tt.want)
			}
		})
	}
}
