package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// signature is what signatures of AWS (SigV4) are checked against, by the steps of the page
// "Create a signed AWS API request". It is written from that page, not with AWS's SDK.
type signature struct {
	region  string
	service string
	keyID   string
	secret  string
}

const (
	signedAlgorithm = "AWS4-HMAC-SHA256"
	signedTime      = "20060102T150405Z"
	maxSkew         = 5 * time.Minute
)

// verify checks the signature of a request over its body as it was received.
func (s signature) verify(r *http.Request, body []byte) error {
	fields, found := strings.CutPrefix(r.Header.Get("Authorization"), signedAlgorithm+" ")
	if !found {
		return errors.New("the request is not signed")
	}
	values := map[string]string{}
	for field := range strings.SplitSeq(fields, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		values[name] = value
	}
	at, err := time.Parse(signedTime, r.Header.Get("X-Amz-Date"))
	if err != nil || time.Since(at).Abs() > maxSkew {
		return errors.New("the signature has expired")
	}
	scope := strings.Join([]string{at.Format("20060102"), s.region, s.service, "aws4_request"}, "/")
	if values["Credential"] != s.keyID+"/"+scope {
		return fmt.Errorf("the credential is not of %s", scope)
	}
	// What a proxy could change unseen must be signed: the host and the headers of Amazon's and
	// Anthropic's.
	signed := strings.Split(values["SignedHeaders"], ";")
	for name := range r.Header {
		name = strings.ToLower(name)
		if (strings.HasPrefix(name, "x-amz-") || strings.HasPrefix(name, "anthropic-")) && !slices.Contains(signed, name) {
			return fmt.Errorf("the header %s is not signed", name)
		}
	}
	if !slices.Contains(signed, "host") || !slices.IsSorted(signed) {
		return errors.New("the host is not signed")
	}
	var path []string
	for segment := range strings.SplitSeq(r.URL.EscapedPath(), "/") {
		path = append(path, url.PathEscape(segment))
	}
	lines := []string{r.Method, strings.Join(path, "/"), r.URL.RawQuery}
	for _, name := range signed {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = strconv.FormatInt(r.ContentLength, 10)
		}
		lines = append(lines, name+":"+strings.Join(strings.Fields(value), " "))
	}
	canonical := strings.Join(append(lines, "", strings.Join(signed, ";"), sumOf(body)), "\n")
	key := []byte("AWS4" + s.secret)
	for _, part := range strings.Split(scope, "/") {
		key = signedWith(key, part)
	}
	toSign := strings.Join([]string{signedAlgorithm, at.Format(signedTime), scope, sumOf([]byte(canonical))}, "\n")
	if want := hex.EncodeToString(signedWith(key, toSign)); !hmac.Equal([]byte(want), []byte(values["Signature"])) {
		return errors.New("the request signature we calculated does not match the signature you provided")
	}
	return nil
}

func sumOf(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

func signedWith(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	h.Write([]byte(text)) // a digest cannot fail to be written
	return h.Sum(nil)
}
