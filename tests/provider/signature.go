package provider

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// signature is what signatures of AWS (SigV4) are checked against: the request is signed again as it was received.
type signature struct {
	region  string
	service string
	keyID   string
	secret  string
}

const (
	signedTime = "20060102T150405Z"
	maxSkew    = 5 * time.Minute
)

// verify checks the signature of a request over its body as it was received.
func (s signature) verify(r *http.Request, body []byte) error {
	given := r.Header.Get("Authorization")
	_, list, found := strings.Cut(given, "SignedHeaders=")
	at, err := time.Parse(signedTime, r.Header.Get("X-Amz-Date"))
	if !found || err != nil || time.Since(at).Abs() > maxSkew {
		return errors.New("the request is not signed, or was long ago")
	}
	list, _, _ = strings.Cut(list, ",")
	signed := strings.Split(list, ";")
	again := r.Clone(r.Context())
	again.URL.Host = r.Host
	for name := range r.Header {
		key := strings.ToLower(name)
		if slices.Contains(signed, key) {
			continue
		}
		// What a proxy could change unseen must be signed: the host, which always is, and the headers of Amazon's and
		// Anthropic's.
		if strings.HasPrefix(key, "x-amz-") || strings.HasPrefix(key, "anthropic-") {
			return fmt.Errorf("the header %s is not signed", key)
		}
		again.Header.Del(name)
	}
	sum := sha256.Sum256(body)
	credentials := aws.Credentials{AccessKeyID: s.keyID, SecretAccessKey: s.secret}
	if err := v4.NewSigner().SignHTTP(r.Context(), credentials, again, hex.EncodeToString(sum[:]), s.service, s.region, at); err != nil {
		return err
	}
	if again.Header.Get("Authorization") != given {
		return errors.New("the request signature we calculated does not match the signature you provided")
	}
	return nil
}
