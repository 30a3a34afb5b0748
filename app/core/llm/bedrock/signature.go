package bedrock

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

// service is the name of the endpoint in signatures.
const service = "bedrock-mantle"

// signer signs requests. Safe for concurrent use.
type signer struct {
	v4          *v4.Signer
	region      string
	credentials aws.CredentialsProvider
}

// sign adds a signature of the request with its body.
func (s *signer) sign(r *http.Request) error {
	ctx := r.Context()
	credentials, err := s.credentials.Retrieve(ctx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return &llm.Error{Kind: llm.KindAuth, Provider: Provider, Message: fmt.Sprintf("no credentials of AWS: %v", err), Err: err}
	}
	sum, err := bodySum(r)
	if err != nil {
		return err
	}
	return s.v4.SignHTTP(ctx, credentials, r, sum, service, s.region, time.Now())
}

// bodySum returns the SHA-256 of the request's body.
func bodySum(r *http.Request) (string, error) {
	body, err := r.GetBody()
	if err != nil {
		return "", err
	}
	defer body.Close()
	h := sha256.New()
	if _, err := io.Copy(h, body); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// defaultChain returns the credentials that AWS's tools find. They are looked for when the first request
// is sent, and kept until they expire.
func defaultChain(region string) aws.CredentialsProvider {
	return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		found, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
		if err != nil {
			return aws.Credentials{}, err
		}
		return found.Credentials.Retrieve(ctx)
	}))
}
