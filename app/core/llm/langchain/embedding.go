package langchain

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/exchange"
)

// maxEmbedAnswer bounds an answer, in bytes: 64 vectors of 4,096 numbers of twenty
// characters, and room.
const maxEmbedAnswer = 16 << 20

// embedding is one request for embeddings. It is langchaingo's HTTP client for that
// one call, and puts the vectors into the order of the texts, which langchaingo
// leaves as they come.
type embedding struct {
	model *Model
	texts int
	sent  bool       // Do was called
	err   *llm.Error // how it failed
}

// errEmbedding tells langchaingo to stop; what really happened is in embedding.err.
var errEmbedding = errors.New("the request failed")

// Do sends the request and reads the answer to its end.
func (x *embedding) Do(built *http.Request) (*http.Response, error) {
	x.sent = true
	var sorted []byte
	x.err = x.model.peer.Do(built.Context(),
		func(ctx context.Context) (*http.Request, error) { return x.request(ctx, built) },
		func(response *http.Response, body io.Reader) (err error) {
			sorted, err = x.read(response.Header, body)
			return err
		})
	if x.err != nil {
		return nil, errEmbedding
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(sorted))}, nil
}

// request returns the request that is really sent.
func (x *embedding) request(ctx context.Context, built *http.Request) (*http.Request, error) {
	text, err := io.ReadAll(built.Body)
	if err != nil {
		return nil, err
	}
	body, err := parseObject(text)
	if err != nil {
		return nil, err
	}
	if err := body.set("model", x.model.options.Model); err != nil {
		return nil, err
	}
	if text, err = body.MarshalJSON(); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, built.URL.String(), bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "bobbin")
	if key := x.model.options.APIKey; key != "" {
		request.Header.Set("Authorization", "Bearer "+key)
	}
	return request, nil
}

// read returns the answer with its vectors in order.
func (x *embedding) read(header http.Header, body io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxEmbedAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxEmbedAnswer {
		return nil, x.unexpected("more than %d bytes", maxEmbedAnswer)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		return nil, x.unexpected("%s", exchange.WebPage)
	}
	return x.sorted(text, header)
}

// vector is a vector on the wire; its numbers are langchaingo's to read.
type vector struct {
	Embedding json.RawMessage `json:"embedding"`
	Index     *int            `json:"index"`
}

// sorted returns the answer with one vector for each text, in their order. A
// server that numbers nothing is taken to answer in order.
func (x *embedding) sorted(text []byte, header http.Header) ([]byte, error) {
	var answer struct {
		Data  []vector        `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, x.unexpected("it is no JSON of embeddings")
	}
	if len(answer.Data) == 0 && len(answer.Error) > 0 && string(answer.Error) != "null" {
		return nil, x.model.peer.Refusal(0, header, text)
	}
	if len(answer.Data) != x.texts {
		return nil, x.unexpected("it has %d vectors for %d texts", len(answer.Data), x.texts)
	}
	ordered := make([]vector, x.texts)
	numbered := isNumbered(answer.Data)
	for i, v := range answer.Data {
		at := i
		if numbered && v.Index != nil {
			at = *v.Index
		}
		if at < 0 || at >= x.texts || ordered[at].Embedding != nil {
			return nil, x.unexpected("it has no vector for one text, and one numbered %d", at)
		}
		if len(v.Embedding) == 0 || v.Embedding[0] != '[' {
			return nil, x.unexpected("vector %d is no list of numbers", at)
		}
		ordered[at] = v
	}
	return json.Marshal(map[string]any{"data": ordered})
}

// isNumbered reports whether the server numbers its vectors: one that does not
// leaves the number out, or calls all of them 0.
func isNumbered(data []vector) bool {
	for _, v := range data {
		if v.Index != nil && *v.Index != 0 {
			return true
		}
	}
	return false
}

// unexpected is the error of an answer that is none to this question.
func (x *embedding) unexpected(format string, args ...any) *llm.Error {
	message := "the answer is not what was asked for: " + fmt.Sprintf(format, args...)
	return &llm.Error{Kind: llm.KindUnknown, Provider: x.model.options.Provider, Message: message}
}
