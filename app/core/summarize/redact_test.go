package summarize_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/llmtest"
)

// What nobody may see again, assembled so that no scanner of repositories stumbles.
const (
	secretKey      = "sk" + "-proj-Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"
	secretPassword = "hunter2-horse"
	secretURL      = "postgres://app:" + secretPassword + "@db:5432/shop"
)

// leaky is a request with secrets in every text that it has.
func leaky() summarize.Request {
	req := request()
	parts := user(20, "")
	parts.Parts = []core.Part{{Type: "text", Text: "in parts: " + secretKey}, {Type: "file", Name: secretKey + ".txt"}}
	req.Messages = append(req.Messages,
		user(11, "My key is "+secretKey+" and I use "+secretURL),
		assistant(12, "I try password="+secretPassword, core.ToolCall{ID: "a", Name: "shell", Arguments: `{"command":"curl -H 'Authorization: Bearer ` + secretKey + `' https://api.example.com/v1"}`}),
		toolResult(13, "a", "Error: API_KEY="+secretKey+" refused\nexit code 1"), parts,
	)
	req.Previous = "## Facts\nThe key is " + secretKey + "."
	req.Focus = "the use of " + secretKey
	req.Limit, req.Replaces = 1_200, 6_000
	return req
}

// Secrets reach neither the summarizer nor the summary, whatever the
// strategy and whoever wrote them; the messages stay as they are (W10).
func TestRow23SecretsAreRedacted(t *testing.T) {
	t.Parallel()
	blabbing := good + "\n\n## Facts\nThe password is " + secretPassword + "1; the key " + secretKey + "."
	strategies := map[string]func(*summarize.LLM) summarize.Strategy{"llm": plain, "hybrid": hybrid,
		"extractive": func(*summarize.LLM) summarize.Strategy { return summarize.NewExtractive(counter{}) }}
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.Scripted(llmtest.Step{Text: []string{blabbing}, Repeat: true})
			req := leaky()
			res, err := summarize.New(strategy(summarize.NewLLM(model, counter{}, nil)), counter{}).Summarize(t.Context(), req)
			if err != nil {
				t.Fatalf("summarize: %v", err)
			}
			texts := []string{res.Content}
			for _, r := range model.Requests() {
				texts = append(texts, lastUser(t, r))
			}
			for _, text := range texts {
				for _, secret := range []string{secretKey, secretPassword} {
					if strings.Contains(text, secret) {
						t.Errorf("got %q in:\n%s", secret, text)
					}
				}
				if !strings.Contains(text, "[redacted: api key]") {
					t.Errorf("got no word of a key in:\n%s", text)
				}
			}
			if name != "llm" && !strings.Contains(res.Content, "https://api.example.com/v1") {
				t.Errorf("got %s, want what is no secret in the ledger", res.Content)
			}
			if diff := cmp.Diff(leaky(), req); diff != "" {
				t.Errorf("the request was changed (-want +got):\n%s", diff)
			}
		})
	}
}
