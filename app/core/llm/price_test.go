package llm_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// Costs are in millionths of a dollar; what is not known is not made up.
func TestCost(t *testing.T) {
	t.Parallel()
	usage := &core.Usage{InputTokens: 1_000_000, OutputTokens: 100_000, ReasoningTokens: 50_000, CacheReadTokens: 600_000, CacheWriteTokens: 200_000}
	for name, c := range map[string]struct {
		info  llm.Info
		usage *core.Usage
		want  int64 // -1 = not known
	}{
		"no prices":         {llm.Info{Provider: "openai"}, usage, -1},
		"no usage":          {llm.Info{Provider: "openai", InputPrice: 1}, nil, -1},
		"the demonstration": {llm.Info{Provider: "demo"}, nil, 0},
		"a local model":     {llm.Info{Provider: "ollama"}, usage, 0},
		"a hosted Ollama":   {llm.Info{Provider: "ollama", OutputPrice: 1}, usage, 100_000},
		"without the cache": {llm.Info{InputPrice: 0.15, OutputPrice: 0.6}, usage, 210_000},
		"with the cache":    {llm.Info{InputPrice: 3, OutputPrice: 15, CacheReadPrice: 0.3, CacheWritePrice: 3.75}, usage, 600_000 + 1_500_000 + 180_000 + 750_000},
		"nothing said":      {llm.Info{InputPrice: 3}, &core.Usage{}, 0},
		"strange usage":     {llm.Info{InputPrice: 1}, &core.Usage{InputTokens: 5, CacheReadTokens: 10}, 10},
		"one token":         {llm.Info{InputPrice: 0.15}, &core.Usage{InputTokens: 10}, 2},
	} {
		got := c.info.Cost(c.usage)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: got %v, want %d", name, got, c.want)
		}
	}
}

// The work beside a conversation is done by a model of the same provider, at the same
// address, with the same key, and one that the operator named: what is said to a server of
// one's own goes to no other.
func TestPreferred(t *testing.T) {
	t.Parallel()
	keys := map[string]string{"OPENAI_API_KEY": "k", "MINE": "m"}
	registry := func(byDefault string, entries ...llm.Entry) *llm.Registry {
		r, err := llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) { return llmtest.Scripted().WithInfo(e.Info()), nil }, llm.Defaults{
			Model: byDefault, Env: func(name string) string { return keys[name] },
			Lookup: func(string) (int, int, float64, bool) { return 8192, 1024, 1, true },
		})
		must.Do(t, err)
		return r
	}
	const box = "http://localhost/v1"
	small := llm.CheapModel("openai")
	fast := llm.Entry{Name: "fast", Provider: "openai", Model: small}
	house, den := llm.Entry{Name: "house", Provider: "openai", BaseURL: box}, llm.Entry{Name: "den", Provider: "openai", BaseURL: box}
	mine := llm.Entry{Name: "mine", Provider: "openai", APIKeyEnv: "MINE"}
	for name, c := range map[string]struct {
		r                  *llm.Registry
		model              string
		byDefault, bySmall string
	}{
		"nothing named":                   {registry("demo"), "gpt-4o", "", ""},
		"the small one by default":        {registry(small), "gpt-4o", small, small},
		"the default itself":              {registry(small), "", small, small},
		"the small one by an entry":       {registry("gpt-4o", fast), "gpt-4.1", "gpt-4o", "fast"},
		"a server of one's own":           {registry(small, fast, house), "house", "", ""},
		"two models on it":                {registry("den", house, den), "house", "den", ""},
		"the cloud beside a server":       {registry("house", house), "gpt-4o", "", ""},
		"another key":                     {registry(small, mine), "mine", "", ""},
		"a provider without a small one":  {registry("demo"), "demo", "demo", ""},
		"a model that nobody knows":       {registry(small), "nonsense", "", ""},
		"a default that cannot be opened": {registry("gemini-pro"), "gpt-4o", "", ""},
	} {
		for p, want := range map[llm.Preference]string{llm.PreferOwn: "", llm.PreferDefault: c.byDefault, llm.PreferSmall: c.bySmall} {
			got := ""
			if m, ok := c.r.Preferred(c.model, p); ok {
				got = m.Info().Name
			}
			if got != want {
				t.Errorf("%s, preference %q: got %q, want %q", name, p, got, want)
			}
		}
	}
}

// Servers of OpenAI's dialect take the output limit under the name that they know: one
// that does not know the name writes as long as it likes.
func TestTakesMaxTokens(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry llm.Entry
		want  bool
	}{
		"OpenAI":                  {llm.Entry{Model: "gpt-4o"}, false},
		"OpenAI by its address":   {llm.Entry{Model: "ft:acme", BaseURL: "https://api.openai.com/v1"}, false},
		"its models at a proxy":   {llm.Entry{Model: "o4-mini", BaseURL: "http://proxy/v1"}, false},
		"a server of one's own":   {llm.Entry{Model: "qwen2.5-14b", BaseURL: "http://localhost:8000/v1"}, true},
		"its open models on that": {llm.Entry{Model: "gpt-oss-20b", BaseURL: "http://localhost:8000/v1"}, true},
		"as configured":           {llm.Entry{Model: "qwen2.5-14b", BaseURL: "http://localhost:8000/v1", MaxTokensField: "max_completion_tokens"}, false},
		"likewise":                {llm.Entry{Model: "gpt-4o", MaxTokensField: "max_tokens"}, true},
	} {
		if got := tt.entry.TakesMaxTokens(); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
