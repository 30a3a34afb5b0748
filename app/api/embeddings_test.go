package api_test

import (
	"encoding/json"
	"strings"
	"testing"

	"bobbin/app/api"
	"bobbin/app/api/openai"
	"bobbin/app/core/llm"
	"bobbin/app/core/quota"
	"bobbin/tests/apitest"
	"bobbin/tests/compare"
)

// The vectors of a request for embeddings count in its caller's share of memory.
func TestEmbeddingsInHand(t *testing.T) {
	t.Parallel()
	opts, _ := options(apitest.New())
	memory := quota.New(quota.Limits{Total: 50_000, Owner: 50_000, User: 50_000, What: "memory"})
	opts.Space.Memory = memory
	opts.OpenAI = openai.Options{Embedder: llm.HashEmbedder{}, CountTokens: func(text string) int { return len(text) }}
	server := api.New(opts)
	embed := func(texts int, format string) (status int, body string) {
		input := strings.TrimSuffix(strings.Repeat(`"looms",`, texts), ",")
		w := do(server, request("POST", "/v1/embeddings", `{"model":"hashing-384-v1","encoding_format":"`+format+`","input":[`+input+`]}`))
		return w.Code, w.Body.String()
	}
	for _, format := range []string{"float", "base64"} {
		var got struct {
			Object, Model string
			Data          []struct {
				Index     int
				Embedding any
			}
			Usage struct {
				Total int `json:"total_tokens"`
			}
		}
		status, body := embed(20, format)
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || got.Object != "list" || got.Model != "hashing-384-v1" || len(got.Data) != 20 || got.Data[19].Index != 19 || got.Usage.Total != 100 {
			t.Errorf("%s: got %d %.300s, want 20 vectors", format, status, body)
		}
	}
	if status, body := embed(200, "float"); status != 429 || !strings.Contains(body, quota.CodeExceeded) {
		t.Errorf("got %d %.300s for 200 vectors, want 429", status, body)
	}
	compare.Equal(t, "bytes held in the end", 0, memory.Used())
}
