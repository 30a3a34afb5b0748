package llm_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
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

// What is said to a server of one's own goes to no other: the small model is one at
// the same address.
func TestCheap(t *testing.T) {
	t.Parallel()
	env := map[string]string{"OPENAI_API_KEY": "k"}
	registry := func(env map[string]string, entries ...llm.Entry) *llm.Registry {
		r, err := llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) { return llm.Scripted().WithInfo(e.Info()), nil }, llm.Defaults{
			Model: "gpt-4o", Env: func(name string) string { return env[name] },
			Lookup: func(string) (int, int, float64, bool) { return 8192, 1024, 1, true },
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	house := llm.Entry{Name: "house", Provider: "openai", BaseURL: "http://localhost/v1"}
	for name, c := range map[string]struct {
		r     *llm.Registry
		model string
		want  bool
	}{
		"the provider's":        {registry(env), "gpt-4o", true},
		"the default":           {registry(env), "", true},
		"all at a proxy":        {registry(map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://proxy/v1"}), "gpt-4o", true},
		"a server of one's own": {registry(env, house), "house", false},
		"another key":           {registry(map[string]string{"OPENAI_API_KEY": "k", "MINE": "m"}, llm.Entry{Name: "mine", Provider: "openai", APIKeyEnv: "MINE"}), "mine", false},
		"no small one":          {registry(env), "demo", false},
		"not known":             {registry(env), "nonsense", false},
		"no key":                {registry(nil), "gpt-4o", false},
	} {
		m, ok := c.r.Cheap(c.model)
		if ok != c.want || ok && m.Info().Name != llm.CheapModel("openai") {
			t.Errorf("%s: got %v, want %v", name, ok, c.want)
		}
	}
}
