package adapters_test

import (
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/tests/provider"
)

// Strict providers say what differs from the prompt of the previous answer, and the adapters read it.
func TestCacheDiagnostics(t *testing.T) {
	t.Parallel()
	unknown := func(k *thinker) { k.req.PreviousAnswer = "msg_unknown" }
	for name, tt := range map[string]struct {
		change         func(k *thinker)
		claude, gpt    string // the beginning of what they say; empty = nothing
		claudeHit, hit bool   // nothing differs
	}{
		"grows":          {func(*thinker) {}, "", "cache_hit", true, true},
		"edited message": {func(k *thinker) { k.req.Messages[0].Content = "edited" }, "messages_changed (cache_missed_input_tokens: ", "input_changed (cache_missed_tokens: ", false, false},
		"instructions":   {func(k *thinker) { k.req.System = []string{"Be short."} }, "system_changed (cache_missed_input_tokens: ", "cache_hit", false, true},
		"tools":          {func(k *thinker) { k.req.Tools[0].Description = "Adds." }, "tools_changed (cache_missed_input_tokens: ", "tools_changed (cache_missed_tokens: ", false, false},
		"another model":  {func(k *thinker) { k.model = strings.NewReplacer("opus", "sonnet", "6.2", "6.3").Replace(k.model) }, "model_changed (", "model_changed (", false, false},
		"unknown answer": {unknown, "previous_message_not_found", "comparison_response_not_found", true, true},
		"no answer":      {func(k *thinker) { k.req.PreviousAnswer = "" }, "", "", true, true},
		"not asked":      {func(k *thinker) { k.req.DiagnoseCache = false }, "", "", true, true},
	} {
		for api, k := range map[string]*thinker{
			"Anthropic": newThinker(t, provider.Strict{}, "claude-opus-5-5", 2_048), "OpenAI": newResponsesThinker(t, provider.Strict{}, gpt),
		} {
			t.Run(name+", "+api, func(t *testing.T) {
				t.Parallel()
				k.t, k.req.DiagnoseCache, k.req.ChecksPrefix = t, true, true
				k.ask("hello")
				if k.answer.ID == "" || k.answer.Diagnosis != nil {
					t.Fatalf("got the id %q and %+v of the first answer, want an id alone", k.answer.ID, k.answer.Diagnosis)
				}
				k.req.PreviousAnswer = k.answer.ID
				tt.change(k)
				want, hit := tt.claude, tt.claudeHit
				if api == "OpenAI" {
					want, hit = tt.gpt, tt.hit
				}
				k.ask("one more")
				got := k.answer.Diagnosis
				if got == nil {
					got = &llm.CacheDiagnosis{}
				}
				if !strings.HasPrefix(got.Words, want) || (got.Words == "") != (want == "") || got.Missed == hit {
					t.Errorf("got %+v, want %q", got, want)
				}
				if (k.answer.ID != "") != k.req.DiagnoseCache {
					t.Errorf("got the id %q", k.answer.ID)
				}
			})
		}
	}
}
