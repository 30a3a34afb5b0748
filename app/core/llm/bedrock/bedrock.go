// Package bedrock opens models of Claude on Amazon Bedrock. It is the only importer of AWS's SDK.
//
// Requests go to the endpoint bedrock-mantle, which speaks Anthropic's Messages API with
// server-sent events, so that package anthropic does everything but the authorization: an API key
// of Bedrock as a bearer token, or else a signature (SigV4) with the credentials of the environment.
// The signature covers the body as it is sent.
package bedrock

import (
	"net/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"bobbin/app/core/llm/anthropic"
)

// Provider is what this provider is called.
const Provider = "bedrock"

// Options say which model is called, and how.
type Options struct {
	anthropic.Options // the BaseURL is required

	Region string // of the signature; not used with an APIKey
	// Credentials sign requests without an APIKey; nil = what AWS's tools find: variables, profiles,
	// single sign-on, roles of containers and machines.
	Credentials aws.CredentialsProvider
}

// New returns the model that the options describe. Nothing is read or sent before the first Stream.
// Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*anthropic.Model, error) {
	return anthropic.NewOnCloud(options.Options, anthropic.Cloud{Provider: Provider, BindingControls: true, Authorize: authorization(options)})
}

// authorization returns what authorizes requests.
func authorization(options Options) func(*http.Request) error {
	if options.APIKey != "" {
		return func(r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+options.APIKey)
			return nil
		}
	}
	credentials := options.Credentials
	if credentials == nil {
		credentials = defaultChain(options.Region)
	}
	return (&signer{v4: v4.NewSigner(), region: options.Region, credentials: credentials}).sign
}
