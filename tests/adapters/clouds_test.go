package adapters_test

import (
	"cmp"
	"context"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/oauth2"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/app/core/llm/bedrock"
	"bobbin/app/core/llm/vertex"
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
			open: func(o anthropic.Options) (llm.Model, error) { return bedrock.New(bedrock.Options{Options: o}) }},
		{name: "bedrock, signed", rules: amazon, base: "/anthropic", path: "/anthropic/v1/messages", signs: true,
			open: func(o anthropic.Options) (llm.Model, error) {
				o.APIKey = ""
				return bedrock.New(bedrock.Options{Options: o, Region: awsRegion, Credentials: testCredentials(awsSecret)})
			}},
		{name: "vertex", rules: provider.Vertex{Project: "project", Location: "eu", Token: key}, base: vertexPath, recording: "vertex",
			path: vertexPath + "/publishers/anthropic/models/claude-sonnet-4-5:streamRawPredict",
			open: func(o anthropic.Options) (llm.Model, error) {
				return vertex.New(vertex.Options{Options: o, Tokens: oauth2.StaticTokenSource(&oauth2.Token{AccessToken: key})})
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
