package anthropic

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/config"

	"bobbin/app/core/llm"
)

// NewOnBedrock is New for a model on Amazon Bedrock, whose endpoint bedrock-mantle speaks the Messages API.
// It authorizes requests with an API key of Bedrock as a bearer token, or else with a signature (SigV4) by
// the credentials, which covers the body as it is sent. The BaseURL is required. The region is that of the
// signature. Nil credentials are what AWS's tools find: variables, profiles, single sign-on, roles of
// containers and machines.
func NewOnBedrock(options Options, region string, credentials aws.CredentialsProvider) (*Model, error) {
	if credentials == nil {
		// They are looked for when the first request is sent, and kept until they expire.
		credentials = aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			found, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
			if err != nil {
				return aws.Credentials{}, err
			}
			return found.Credentials.Retrieve(ctx)
		}))
	}
	signer := v4.NewSigner()
	return NewOnCloud(options, Cloud{Provider: llm.ProviderBedrock, BindingControls: true, Authorize: func(r *http.Request) error {
		ctx := r.Context()
		found, err := credentials.Retrieve(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return &llm.Error{Kind: llm.KindAuth, Provider: llm.ProviderBedrock, Message: fmt.Sprintf("no credentials of AWS: %v", err), Err: err}
		}
		body, err := r.GetBody()
		if err != nil {
			return err
		}
		raw, err := io.ReadAll(body)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		return signer.SignHTTP(ctx, found, r, hex.EncodeToString(sum[:]), bedrockEndpoint, region, time.Now())
	}})
}

// bedrockEndpoint is the name of the endpoint in signatures.
const bedrockEndpoint = "bedrock-mantle"
