package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
)

// maxEmbedAnswer bounds an answer, in bytes: 64 vectors of 4,096 numbers of twenty
// characters, and room.
const maxEmbedAnswer = 16 << 20

// embeddingRequest is the body of a request for embeddings.
type embeddingRequest struct {
	Model string   `json:"model"`
	Input []string `json:"input"`
}

// embeddingAnswer reads the answer to a request for embeddings.
type embeddingAnswer struct {
	model  *Model
	header http.Header
	texts  int
}

// read returns the vectors in the order of the texts.
func (x *embeddingAnswer) read(body io.Reader) ([][]float32, error) {
	text, err := io.ReadAll(io.LimitReader(body, maxEmbedAnswer+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxEmbedAnswer {
		return nil, x.unexpectedError("more than %d bytes", maxEmbedAnswer)
	}
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		return nil, x.unexpectedError("%s", providerhttp.WebPage)
	}
	return x.sortVectors(text)
}

type vector struct {
	Embedding json.RawMessage `json:"embedding"`
	Index     *int            `json:"index"`
}

// sortVectors returns one vector for each text, in the order of the texts. A server that
// numbers nothing is taken to answer in order.
func (x *embeddingAnswer) sortVectors(text []byte) ([][]float32, error) {
	var answer struct {
		Data  []vector        `json:"data"`
		Error json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return nil, x.unexpectedError("it is no JSON of embeddings")
	}
	if len(answer.Data) == 0 && len(answer.Error) > 0 && string(answer.Error) != "null" {
		return nil, x.model.peer.Refusal(0, x.header, text)
	}
	if len(answer.Data) != x.texts {
		return nil, x.unexpectedError("it has %d vectors for %d texts", len(answer.Data), x.texts)
	}
	ordered := make([][]float32, x.texts)
	numbered := isNumbered(answer.Data)
	for i, v := range answer.Data {
		at := i
		if numbered && v.Index != nil {
			at = *v.Index
		}
		if at < 0 || at >= x.texts || ordered[at] != nil {
			return nil, x.unexpectedError("it has no vector for one text, and one numbered %d", at)
		}
		if len(v.Embedding) == 0 || v.Embedding[0] != '[' {
			return nil, x.unexpectedError("vector %d is no list of numbers", at)
		}
		if err := json.Unmarshal(v.Embedding, &ordered[at]); err != nil {
			return nil, x.unexpectedError("vector %d cannot be read", at)
		}
	}
	return ordered, nil
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

// unexpectedError returns the error of an answer that does not match the request.
func (x *embeddingAnswer) unexpectedError(format string, args ...any) *llm.Error {
	message := "the answer is not what was asked for: " + fmt.Sprintf(format, args...)
	return &llm.Error{Kind: llm.KindUnknown, Provider: x.model.options.Provider, Message: message}
}
