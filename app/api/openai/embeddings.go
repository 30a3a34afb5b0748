package openai

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Limits of a request for embeddings.
const (
	maxInputs     = 2048
	maxInputBytes = 1 << 20
)

type embeddingRequest struct {
	Model      string     `json:"model"`
	Input      inputTexts `json:"input"`
	Format     string     `json:"encoding_format"`
	Dimensions int        `json:"dimensions"`
}

// inputTexts is a text or a list of texts.
type inputTexts stringList

// UnmarshalJSON reads a text or a list of texts.
func (l *inputTexts) UnmarshalJSON(data []byte) error {
	if (*stringList)(l).UnmarshalJSON(data) != nil {
		return errors.New("must be a text or a list of texts; lists of tokens are not supported (LangChain: check_embedding_ctx_length=False)")
	}
	return nil
}

type embedding struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // a list of numbers, or a text in base64
}

type embeddingList struct {
	Object string      `json:"object"`
	Data   []embedding `json:"data"`
	Model  string      `json:"model"`
	Usage  struct {
		PromptTokens int `json:"prompt_tokens"`
		TotalTokens  int `json:"total_tokens"`
	} `json:"usage"`
}

// Embed answers POST /v1/embeddings with vectors of the configured embedding model.
func (a *API) Embed(c *gin.Context) error {
	body, err := handlers.ReadForeign[embeddingRequest](c)
	if err != nil {
		return err
	}
	if err := a.checkEmbedding(body); err != nil {
		return err
	}
	const bytesPerNumber = 4 + 16 // in a vector and as JSON
	if err := handlers.HoldOf(c).Grow(int64(len(body.Input) * cmp.Or(a.Embedder.Dimension(), defaultDimension) * bytesPerNumber)); err != nil {
		return err
	}
	vectors, err := a.Embedder.Embed(c.Request.Context(), body.Input)
	if err != nil {
		return err
	}
	list := embeddingList{Object: "list", Data: make([]embedding, 0, len(vectors)), Model: a.Embedder.Model()}
	for i, v := range vectors {
		e := embedding{Object: "embedding", Index: i, Embedding: v}
		if body.Format == "base64" {
			var raw bytes.Buffer
			_ = binary.Write(&raw, binary.LittleEndian, v) // a buffer cannot fail
			e.Embedding = base64.StdEncoding.EncodeToString(raw.Bytes())
		}
		list.Data = append(list.Data, e)
	}
	for _, text := range body.Input {
		list.Usage.PromptTokens += a.CountTokens(text)
	}
	list.Usage.TotalTokens = list.Usage.PromptTokens
	return writeJSON(c, list, nil)
}

// defaultDimension is assumed until the model has returned its first vector.
const defaultDimension = 3072

func (a *API) checkEmbedding(body embeddingRequest) error {
	_, own, _ := strings.Cut(a.Embedder.Model(), ":") // behind the provider's
	if body.Model == "" || !slices.Contains([]string{a.Embedder.Model(), own, a.EmbeddingModel}, body.Model) {
		return &core.Error{Kind: core.ErrNotFound, Code: CodeUnknownModel,
			Message: "the embedding model " + quoteShort(body.Model) + " does not exist; the server has " + cmp.Or(a.EmbeddingModel, a.Embedder.Model())}
	}
	var f core.Faults
	size := 0
	for _, text := range body.Input {
		size += len(text)
		if strings.TrimSpace(text) == "" {
			f.Add("input", "has an empty text")
			break
		}
	}
	switch {
	case len(body.Input) == 0:
		f.Add("input", "is empty")
	case len(body.Input) > maxInputs:
		f.Add("input", "has %d texts, at most %d are allowed", len(body.Input), maxInputs)
	case size > maxInputBytes:
		f.Add("input", "has %d bytes, at most %d are allowed", size, maxInputBytes)
	}
	if body.Format != "" && body.Format != "float" && body.Format != "base64" {
		f.Add("encoding_format", "must be float or base64")
	}
	if n := a.Embedder.Dimension(); body.Dimensions != 0 && n != 0 && body.Dimensions != n {
		f.Add("dimensions", "must be %d: the model has no other", n)
	}
	return f.Err()
}
