package provider

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// Cloud puts a provider of Anthropic's dialect behind the rules of a cloud: it refuses requests
// that the cloud would refuse, and passes on others as Anthropic's own API gets them.
type Cloud interface {
	Wrap(messages http.Handler) http.Handler
}

// Bedrock is the endpoint bedrock-mantle of Amazon Bedrock, after the clients of
// anthropic-sdk-go v1.84.0 (bedrock/bedrockmantle.go).
type Bedrock struct {
	Key         string // an API key; empty = none is valid
	Region      string // of signatures
	AccessKeyID string
	SecretKey   string
}

// Wrap returns the handler behind the rules of Bedrock.
func (b Bedrock) Wrap(messages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		path, found := strings.CutPrefix(r.URL.Path, "/anthropic")
		switch {
		case !found || path != "/v1/messages":
			refuseCloud(w, http.StatusNotFound, "there is no "+r.URL.Path)
		case r.Header.Get("Anthropic-Version") != "2023-06-01":
			refuseCloud(w, http.StatusBadRequest, "anthropic-version: header is required")
		case r.Header.Get("X-Api-Key") != "":
			refuseCloud(w, http.StatusForbidden, "x-api-key is a key of Anthropic's")
		default:
			if err := b.authorize(r, body); err != nil {
				refuseCloud(w, http.StatusForbidden, err.Error())
				return
			}
			pass(messages, w, r, path, body)
		}
	})
}

// authorize checks the key or the signature.
func (b Bedrock) authorize(r *http.Request, body []byte) error {
	if key, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		if b.Key == "" || key != b.Key {
			return fmt.Errorf("the API key is not valid")
		}
		return nil
	}
	return signature{region: b.Region, service: "bedrock-mantle", keyID: b.AccessKeyID, secret: b.SecretKey}.verify(r, body)
}

// Vertex is Claude on Google Vertex AI, after the client of anthropic-sdk-go v1.84.0
// (vertex/vertex.go).
type Vertex struct {
	Project  string
	Location string
	Token    string
}

// predict is the path of a request, without project and location.
var predict = regexp.MustCompile(`^/publishers/anthropic/models/([^/:]+):(rawPredict|streamRawPredict)$`)

// Wrap returns the handler behind the rules of Vertex.
func (v Vertex) Wrap(messages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the caller went away
		}
		path, found := strings.CutPrefix(r.URL.Path, "/v1/projects/"+v.Project+"/locations/"+v.Location)
		place := predict.FindStringSubmatch(path)
		if !found || place == nil {
			refuseCloud(w, http.StatusNotFound, "there is no "+r.URL.Path)
			return
		}
		if r.Header.Get("Authorization") != "Bearer "+v.Token || r.Header.Get("X-Api-Key") != "" {
			refuseCloud(w, http.StatusUnauthorized, "the token is not valid")
			return
		}
		plain, err := v.plain(body, place[1], place[2] == "streamRawPredict")
		if err != nil {
			refuseCloud(w, http.StatusBadRequest, err.Error())
			return
		}
		pass(messages, w, r, "/v1/messages", plain)
	})
}

// plain returns the body as Anthropic's own API gets it, in the order in which it came: the bytes
// of prompts are compared.
func (Vertex) plain(body []byte, model string, streams bool) ([]byte, error) {
	var req struct {
		Model    *string                    `json:"model"`
		Version  string                     `json:"anthropic_version"`
		Stream   bool                       `json:"stream"`
		Thinking map[string]json.RawMessage `json:"thinking"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, err
	}
	switch {
	case req.Model != nil:
		return nil, fmt.Errorf("model: Extra inputs are not permitted")
	case req.Version != "vertex-2023-10-16":
		return nil, fmt.Errorf("anthropic_version: %q is not a version", req.Version)
	case req.Stream != streams:
		return nil, fmt.Errorf("stream: it does not fit the path")
	case req.Thinking["block_binding"] != nil:
		return nil, fmt.Errorf("thinking.%s.block_binding: Extra inputs are not permitted", req.Thinking["type"])
	}
	version := []byte(`"anthropic_version":"vertex-2023-10-16"`)
	body = bytes.Replace(body, append(version, ','), nil, 1)
	body = bytes.Replace(body, append([]byte{','}, version...), nil, 1)
	return append([]byte(`{"model":`+quoted(model)+`,`), body[1:]...), nil
}

// pass passes the request on, unless it uses what Anthropic has at home only.
func pass(messages http.Handler, w http.ResponseWriter, r *http.Request, path string, body []byte) {
	var req struct {
		Compaction json.RawMessage `json:"compaction"`
		Messages   []struct {
			Role string `json:"role"`
		} `json:"messages"`
	}
	if err := json.Unmarshal(body, &req); err != nil {
		refuseCloud(w, http.StatusBadRequest, err.Error())
		return
	}
	if len(req.Compaction) > 0 {
		refuseCloud(w, http.StatusBadRequest, "compaction: Extra inputs are not permitted")
		return
	}
	for i, m := range req.Messages {
		if m.Role == "system" {
			refuseCloud(w, http.StatusBadRequest, fmt.Sprintf("messages.%d: role: Input should be 'user' or 'assistant'", i))
			return
		}
	}
	r = r.Clone(r.Context())
	r.URL.Path, r.Body, r.ContentLength = path, io.NopCloser(bytes.NewReader(body)), int64(len(body))
	messages.ServeHTTP(w, r)
}

// refuseCloud answers with an error in Anthropic's form.
func refuseCloud(w http.ResponseWriter, status int, message string) {
	kind := map[int]string{http.StatusForbidden: "permission_error", http.StatusUnauthorized: "authentication_error", http.StatusNotFound: "not_found_error"}[status]
	writeJSON(w, status, map[string]any{"type": "error", "error": map[string]any{"type": cmp.Or(kind, "invalid_request_error"), "message": message}})
}

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
