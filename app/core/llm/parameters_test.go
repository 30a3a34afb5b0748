package llm_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// The options of a run are refused for what they set themselves, and for what an answer needs;
// parameters of the agent that only tune an answer are not.
func TestLackingForRun(t *testing.T) {
	t.Parallel()
	all := []llm.Parameter{llm.Temperature, llm.TopPBeside, llm.Stop, llm.Seed, llm.JSONObject, llm.Tools, llm.StrictTools, llm.ForcedTools, llm.ParallelTools}
	tuned := core.Agent{ModelParameters: core.ModelParameters{Temperature: new(0.5), Seed: new(1)}}
	tool := []core.ClientTool{{Name: "f", Strict: new(true)}}
	for name, c := range map[string]struct {
		agent   core.Agent
		options core.RunOptions
		lacks   []llm.Parameter
		none    bool // the model has no tool choice
		want    []llm.Parameter
	}{
		"nothing":                      {tuned, core.RunOptions{}, all, true, nil},
		"its own temperature":          {tuned, core.RunOptions{ModelParameters: core.ModelParameters{Temperature: new(1.0)}}, all, false, []llm.Parameter{llm.Temperature}},
		"its own top_p":                {tuned, core.RunOptions{ModelParameters: core.ModelParameters{TopP: new(0.5)}}, []llm.Parameter{llm.TopPBeside}, false, []llm.Parameter{llm.TopPBeside}},
		"the agent's stop":             {core.Agent{ModelParameters: core.ModelParameters{Stop: []string{"x"}}}, core.RunOptions{}, all, false, []llm.Parameter{llm.Stop}},
		"tools":                        {core.Agent{}, core.RunOptions{Tools: tool, ToolChoice: "f", ParallelToolCalls: new(false)}, all, false, []llm.Parameter{llm.Tools, llm.StrictTools, llm.ForcedTools, llm.ParallelTools}},
		"parallel calls, as ever":      {core.Agent{Tools: []string{"g"}}, core.RunOptions{ParallelToolCalls: new(true)}, []llm.Parameter{llm.ParallelTools}, false, nil},
		"a choice without tools":       {core.Agent{}, core.RunOptions{ToolChoice: core.ToolChoiceNone, ParallelToolCalls: new(false)}, all, true, nil},
		"required, without any choice": {core.Agent{Tools: []string{"g"}}, core.RunOptions{ToolChoice: core.ToolChoiceRequired}, nil, true, []llm.Parameter{llm.ForcedTools}},
		"a model that takes all":       {tuned, core.RunOptions{Tools: tool, ToolChoice: "f", ParallelToolCalls: new(false)}, nil, false, nil},
	} {
		got := llm.Info{Lacks: c.lacks, NoToolChoice: c.none}.LackingForRun(c.agent, c.options)
		compare.Equal(t, name, c.want, got, cmpopts.EquateEmpty())
	}
}

// What a model does not take is left out of options that may lose it, in a way that it takes the rest;
// what an answer is nothing without stays.
func TestLeaveOut(t *testing.T) {
	t.Parallel()
	given := core.RunOptions{
		ModelParameters: core.ModelParameters{
			Temperature: new(1.5), TopP: new(1.0), Stop: []string{"x"}, Seed: new(1), ReasoningEffort: "low", ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONObject},
		},
		Tools: []core.ClientTool{{Name: "f", Strict: new(true)}}, ToolChoice: core.ToolChoiceRequired, ParallelToolCalls: new(false),
	}
	for _, p := range []llm.Parameter{
		llm.Temperature, llm.HighTemperature, llm.TopP, llm.TopPBeside, llm.Seed, llm.ReasoningEffort, llm.JSONObject, llm.StrictTools, llm.ForcedTools, llm.ParallelTools,
	} {
		info := llm.Info{Lacks: []llm.Parameter{p}}
		rest, ok := p.LeaveOut(given)
		if still := info.LackingForRun(core.Agent{}, rest); !ok || len(still) > 0 {
			t.Errorf("%s: got %v, and the model lacks %v", p, ok, still)
		}
		compare.Equal(t, fmt.Sprintf("%s: parameters that the model lacks", p), 1, len(info.LackingForRun(core.Agent{}, given)))
	}
	if rest, _ := llm.JSONObject.LeaveOut(given); !strings.Contains(rest.Instructions, "JSON object") {
		t.Errorf("got the instructions %q, want the word JSON in place of the format", rest.Instructions)
	}
	for _, p := range []llm.Parameter{llm.Stop, llm.BlankStop, llm.JSONSchema, llm.Tools} {
		if _, ok := p.LeaveOut(given); ok {
			t.Errorf("%s is left out", p)
		}
	}
}

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
		r, err := llm.NewRegistry(entries, func(e llm.Entry) (llm.Model, error) { return llmtest.Scripted().WithInfo(e.Info), nil }, llm.Defaults{
			Model: byDefault, Env: func(name string) string { return keys[name] },
			Lookup: func(string) (int, int, float64, bool) { return 8192, 1024, 1, true },
		})
		must.Do(t, err)
		return r
	}
	const box = "http://localhost/v1"
	small := llm.CheapModel("openai")
	fast := llm.Entry{Info: llm.Info{Name: "fast", Provider: "openai"}, Model: small}
	house, den := llm.Entry{Info: llm.Info{Name: "house", Provider: "openai"}, BaseURL: box}, llm.Entry{Info: llm.Info{Name: "den", Provider: "openai"}, BaseURL: box}
	mine := llm.Entry{Info: llm.Info{Name: "mine", Provider: "openai"}, APIKeyEnv: "MINE"}
	at := func(name, region string) llm.Entry {
		return llm.Entry{Info: llm.Info{Name: name, Provider: "vertex"}, Project: "p", Region: region}
	}
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
		"a cloud, the same place":         {registry("beside", at("here", "eu"), at("beside", "eu")), "here", "beside", ""},
		"a cloud, another place":          {registry("there", at("here", "eu"), at("there", "us")), "here", "", ""},
		"a provider without a small one":  {registry("demo"), "demo", "demo", ""},
		"a model that nobody knows":       {registry(small), "nonsense", "", ""},
		"a default that cannot be opened": {registry("gemini-pro"), "gpt-4o", "", ""},
	} {
		for p, want := range map[llm.Preference]string{llm.PreferOwn: "", llm.PreferDefault: c.byDefault, llm.PreferSmall: c.bySmall} {
			got := ""
			if m, ok := c.r.Preferred(c.model, p); ok {
				got = m.Info().Name
			}
			compare.Equal(t, fmt.Sprintf("%s, preference %q", name, p), want, got)
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
		compare.Equal(t, name, tt.want, tt.entry.TakesMaxTokens())
	}
}

// Callers choose among what is configured: a name that only looks like a provider's
// model is none, and an error says nothing of what the server has in its environment.
func TestOffer(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, []llm.Entry{
		{Info: llm.Info{Name: "house", Provider: "vllm"}, BaseURL: "http://box/v1"}, {Info: llm.Info{Name: "locked", Provider: "openai"}, APIKeyEnv: "SECRET_KEY"},
	}, llm.Defaults{Model: "ollama/llama3.2"})
	offer := r.Offer(func() []string { return []string{"ollama/agents", ""} })
	for _, name := range []string{"", "house", "ollama/llama3.2", "ollama/agents"} {
		if m, err := offer.Get(name); err != nil || m == nil {
			t.Errorf("%q: got %v, %v, want the model", name, m, err)
		}
	}
	listed := map[string]bool{}
	for _, m := range offer.List("") {
		listed[m.Name] = m.Default
	}
	compare.Equal(t, "models that can be used, and whether they are the default", map[string]bool{"house": false, "ollama/llama3.2": true, "ollama/agents": false}, listed)
	if own := offer.List("house"); !own[0].Default || own[0].Provider != "vllm" || own[0].Window == 0 {
		t.Errorf("got %+v first, want the model of that name as the default", own)
	}
	for name, kind := range map[string]error{
		"demo": core.ErrNotFound, "ollama/other": core.ErrNotFound, "gpt-4o": core.ErrNotFound, "openai/o1-pro": core.ErrNotFound,
		"openai/../../../x?y": core.ErrNotFound, "locked": core.ErrInvalid, strings.Repeat("x", 9000): core.ErrNotFound,
	} {
		_, err := offer.Get(name)
		var shown *core.Error
		if !errors.Is(err, kind) || !errors.As(err, &shown) {
			t.Errorf("%.20s: got %v, want a *core.Error of %v", name, err, kind)
			continue
		}
		if strings.Contains(shown.Message, "_KEY") || strings.Contains(shown.Message, "bobbin.yaml") || len(shown.Message) > 400 {
			t.Errorf("%.20s: got %q, want nothing of the server's settings", name, shown.Message)
		}
	}
	if _, err := offer.Get("gpt-4o"); err == nil || !strings.Contains(err.Error(), "house, locked, ollama/agents, ollama/llama3.2") {
		t.Errorf("got %v, want it to name the models", err)
	}
}

// A fallback that lacks a parameter of tools is not sent it; the list of the others stays.
func TestWithParametersOfTools(t *testing.T) {
	t.Parallel()
	req := llm.Request{Tools: []llm.ToolSpec{{Name: "f", Strict: new(true)}}, ParallelToolCalls: new(true)}
	got := req.WithParameters(core.ModelParameters{}, llm.Info{Lacks: []llm.Parameter{llm.StrictTools, llm.ParallelTools}})
	if got.ParallelToolCalls != nil || got.Tools[0].Strict != nil || req.Tools[0].Strict == nil {
		t.Errorf("got %+v, want neither, and the request as it was", got)
	}
	if same := req.WithParameters(core.ModelParameters{}, llm.Info{}); same.ParallelToolCalls == nil || same.Tools[0].Strict == nil {
		t.Errorf("got %+v, want both", same)
	}
}
