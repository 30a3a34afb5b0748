package llm_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// variables is an environment.
func variables(pairs ...string) func(string) string {
	env := map[string]string{}
	for _, p := range pairs {
		name, value, _ := strings.Cut(p, "=")
		env[name] = value
	}
	return func(name string) string { return env[name] }
}

func lookup(model string) (window, maxOutput int, factor float64, known bool) {
	switch model {
	case "gpt-4o":
		return 128_000, 16_384, 1, true
	case "llama3.2":
		return 131_072, 0, 1.1, true
	default:
		return 8_192, 0, 1, false
	}
}

// openInfo opens an entry as a scripted model that keeps the entry's description.
func openInfo(e llm.Entry) (llm.Model, error) { return llmtest.Scripted().WithInfo(e.Info), nil }

func newRegistry(t *testing.T, entries []llm.Entry, defaults llm.Defaults) *llm.Registry {
	t.Helper()
	if defaults.Env == nil {
		defaults.Env = variables()
	}
	defaults.Lookup = lookup
	return must.Get(llm.NewRegistry(entries, openInfo, defaults))(t)
}

func TestRegistryResolves(t *testing.T) {
	t.Parallel()
	entries := []llm.Entry{
		{Info: llm.Info{Name: "fast", Provider: "openai", Window: 10_000, MaxOutput: 99, PriorFactor: 2, InputPrice: 1}, Model: "gpt-4o", APIKeyEnv: "MY_KEY"},
		{Info: llm.Info{Name: "box", Provider: "vllm"}, Model: "llama3.2", BaseURL: "http://box:8000/v1"},
		{Info: llm.Info{Name: "local", Provider: "openai"}, BaseURL: "http://127.0.0.1:1/v1"},
		{Info: llm.Info{Name: "gpt-4o", Provider: "openrouter"}, Model: "openai/gpt-4o"},
		{Info: llm.Info{Name: "bare"}},
		{Info: llm.Info{Name: "thinker", Provider: "anthropic"}, Model: "claude-x", Thinking: 2_048},
		{Info: llm.Info{Name: "wide", Provider: "ollama", Window: 32_768}, Model: "llama3.2"},
	}
	env := variables("MY_KEY=k", "OPENAI_API_KEY=k", "GEMINI_API_KEY=k", "OPENROUTER_API_KEY=k", "MISTRAL_API_KEY=k",
		"OPENAI_BASE_URL=http://proxy.test/v1", "OLLAMA_HOST=gpu", "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=http://claude.test", "AWS_REGION=us-east-1")
	r := newRegistry(t, entries, llm.Defaults{Env: env})
	// Only what may be slow has no time limits of its own.
	slow := []string{"box", "local", "wide", "ollama/llama3.2", "langchain/ollama/m"}
	for name, want := range map[string]llm.Entry{
		"fast":                  {Info: llm.Info{Name: "fast", Provider: "openai", Window: 10_000, WindowFrom: llm.WindowConfigured, MaxOutput: 99, PriorFactor: 2, InputPrice: 1}, Model: "gpt-4o", BaseURL: "http://proxy.test/v1", APIKeyEnv: "MY_KEY"},
		"box":                   {Info: llm.Info{Name: "box", Provider: "vllm", Window: 131_072, WindowFrom: llm.WindowKnown, PriorFactor: 1.1}, Model: "llama3.2", BaseURL: "http://box:8000/v1"},
		"local":                 {Info: llm.Info{Name: "local", Provider: "openai", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "local", BaseURL: "http://127.0.0.1:1/v1", APIKeyEnv: "OPENAI_API_KEY"},
		"gpt-4o":                {Info: llm.Info{Name: "gpt-4o", Provider: "openrouter", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "openai/gpt-4o", APIKeyEnv: "OPENROUTER_API_KEY"},
		"bare":                  {Info: llm.Info{Name: "bare", Provider: "openai", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "bare", BaseURL: "http://proxy.test/v1", APIKeyEnv: "OPENAI_API_KEY"},
		"wide":                  {Info: llm.Info{Name: "wide", Provider: "ollama", Window: 32_768, WindowFrom: llm.WindowConfigured, PriorFactor: 1.1}, Model: "llama3.2", BaseURL: "http://gpu:11434/v1"},
		"demo":                  {Info: llm.Info{Name: "demo", Provider: "demo"}, Model: "demo"},
		"openai/gpt-4o":         {Info: llm.Info{Name: "openai/gpt-4o", Provider: "openai", Window: 128_000, WindowFrom: llm.WindowKnown, MaxOutput: 16_384, PriorFactor: 1}, Model: "gpt-4o", BaseURL: "http://proxy.test/v1", APIKeyEnv: "OPENAI_API_KEY"},
		"gpt-5-nano":            {Info: llm.Info{Name: "gpt-5-nano", Provider: "openai", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "gpt-5-nano", BaseURL: "http://proxy.test/v1", APIKeyEnv: "OPENAI_API_KEY"},
		"o3-mini":               {Info: llm.Info{Name: "o3-mini", Provider: "openai", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "o3-mini", BaseURL: "http://proxy.test/v1", APIKeyEnv: "OPENAI_API_KEY"},
		"gemini-flash-latest":   {Info: llm.Info{Name: "gemini-flash-latest", Provider: "gemini", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "gemini-flash-latest", APIKeyEnv: "GEMINI_API_KEY"},
		"ollama/llama3.2":       {Info: llm.Info{Name: "ollama/llama3.2", Provider: "ollama", Window: 4_096, WindowFrom: llm.WindowKnown, PriorFactor: 1.1}, Model: "llama3.2", BaseURL: "http://gpu:11434/v1"},
		"openrouter/x-ai/grok":  {Info: llm.Info{Name: "openrouter/x-ai/grok", Provider: "openrouter", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "x-ai/grok", APIKeyEnv: "OPENROUTER_API_KEY"},
		"langchain/ollama/m":    {Info: llm.Info{Name: "langchain/ollama/m", Provider: "langchain/ollama", Window: 4_096, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "m", BaseURL: "http://gpu:11434"},
		"mistral/mistral-small": {Info: llm.Info{Name: "mistral/mistral-small", Provider: "mistral", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "mistral-small", APIKeyEnv: "MISTRAL_API_KEY"},
		"thinker":               {Info: llm.Info{Name: "thinker", Provider: "anthropic", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "claude-x", BaseURL: "http://claude.test", APIKeyEnv: "ANTHROPIC_API_KEY", Thinking: 2_048},
		"anthropic/claude-x":    {Info: llm.Info{Name: "anthropic/claude-x", Provider: "anthropic", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "claude-x", BaseURL: "http://claude.test", APIKeyEnv: "ANTHROPIC_API_KEY"},
		"claude-opus-5":         {Info: llm.Info{Name: "claude-opus-5", Provider: "anthropic", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "claude-opus-5", BaseURL: "http://claude.test", APIKeyEnv: "ANTHROPIC_API_KEY"},
		"bedrock/claude-x":      {Info: llm.Info{Name: "bedrock/claude-x", Provider: "bedrock", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "claude-x", BaseURL: "https://bedrock-mantle.us-east-1.api.aws/anthropic", Region: "us-east-1"},
		"ft:gpt-4o:me::1":       {Info: llm.Info{Name: "ft:gpt-4o:me::1", Provider: "openai", Window: 8_192, WindowFrom: llm.WindowAssumed, PriorFactor: 1}, Model: "ft:gpt-4o:me::1", BaseURL: "http://proxy.test/v1", APIKeyEnv: "OPENAI_API_KEY"},
	} {
		if slices.Contains(slow, name) {
			want.FirstByteTime, want.IdleTime = -1, -1
		}
		got, err := r.Resolve(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		compare.Equal(t, name, want, got)
	}
	compare.Equal(t, "names", []string{"bare", "box", "fast", "gpt-4o", "local", "thinker", "wide"}, r.Names())
}

func TestRegistryOllamaWindow(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]int{"": 4_096, "32768": 32_768, "999999": 131_072, "many": 4_096, "-1": 4_096} {
		r := newRegistry(t, nil, llm.Defaults{Env: variables("OLLAMA_CONTEXT_LENGTH=" + value)})
		compare.Equal(t, "OLLAMA_CONTEXT_LENGTH="+value, want, must.Get(r.Resolve("ollama/llama3.2"))(t).Window)
	}
}

// A model whose key is missing is described, besides what is missing.
func TestRegistryDescribes(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, nil, llm.Defaults{Model: "gpt-4o", Env: variables("ANTHROPIC_API_KEY=k")})
	for name, c := range map[string]struct {
		model string
		kind  error
	}{
		"claude-5": {"claude-5", nil}, "gpt-5": {"gpt-5", core.ErrInvalid}, "": {"gpt-4o", core.ErrInvalid}, "nosuch": {"", core.ErrNotFound},
	} {
		info, err := r.Describe(name)
		compare.Equal(t, name, []any{c.model, true}, []any{info.Name, errors.Is(err, c.kind)})
	}
}

func TestRegistryErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	r := newRegistry(t, []llm.Entry{
		{Info: llm.Info{Name: "b", Provider: "openai"}, APIKeyEnv: "B_KEY", BaseURL: "http://box/v1"}, {Info: llm.Info{Name: "a", Provider: "vllm"}, BaseURL: "http://box/v1"},
	}, llm.Defaults{})
	for name, c := range map[string]struct {
		kind error
		says []string
	}{
		"llama":         {core.ErrNotFound, []string{`"llama"`, "a, b", "bobbin.yaml", "ollama/llama3.2", "demo"}},
		"claude-5":      {core.ErrInvalid, []string{"claude-5", "ANTHROPIC_API_KEY"}},
		"acme/x":        {core.ErrNotFound, []string{`"acme/x"`}},
		"openai/":       {core.ErrNotFound, []string{`"openai/"`}},
		"olmo":          {core.ErrNotFound, []string{`"olmo"`}},
		"":              {core.ErrNotFound, []string{`""`}},
		"gpt-4o":        {core.ErrInvalid, []string{"gpt-4o", "OPENAI_API_KEY"}},
		"gemini-pro":    {core.ErrInvalid, []string{"GEMINI_API_KEY"}},
		"mistral/small": {core.ErrInvalid, []string{"MISTRAL_API_KEY"}},
		"b":             {core.ErrInvalid, []string{"B_KEY"}},
	} {
		_, err := r.Get(name)
		var shown *core.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &shown) {
			t.Errorf("%s: got %v, want a *core.Error of %v", name, err, c.kind)
			continue
		}
		for _, want := range c.says {
			compare.Contains(t, name+": what is shown", want, shown.Message)
		}
	}
	if _, err := newRegistry(t, nil, llm.Defaults{}).Get("x"); err == nil || !strings.Contains(err.Error(), "no models are configured") {
		t.Errorf("got %v, want it to say that there are no models", err)
	}
}

func TestRegistryOpensOnce(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	broken := errors.New("broken")
	fail := atomic.Bool{}
	fail.Store(true)
	r, err := llm.NewRegistry(nil, func(e llm.Entry) (llm.Model, error) {
		if fail.Load() {
			return nil, broken
		}
		opened.Add(1)
		return openInfo(e)
	}, llm.Defaults{Env: variables(), Lookup: lookup, Model: "demo"})
	must.Do(t, err)
	compare.Error(t, `compare.ErrorOf(r.Get("")): want the error of open`, broken, compare.ErrorOf(r.Get("")))
	fail.Store(false) // an error is not kept
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for _, name := range []string{"", "demo", "ollama/x"} {
				if m, err := r.Get(name); err != nil || m == nil {
					t.Errorf("%q: got %v, %v", name, m, err)
				}
			}
		})
	}
	wg.Wait()
	compare.Equal(t, "opened models", 2, opened.Load())
}

// Where requests to the clouds go, whether they have a key, and what is missing.
func TestRegistryPlacesClouds(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		entry         llm.Entry
		env           []string
		base, keyFrom string
		fault         string // empty = none
	}{
		"bedrock, region of the entry": {llm.Entry{Info: llm.Info{Provider: "bedrock"}, Region: "eu-central-1"}, []string{"AWS_REGION=us-east-1"},
			"https://bedrock-mantle.eu-central-1.api.aws/anthropic", "", ""},
		"bedrock, region of the environment": {llm.Entry{Info: llm.Info{Provider: "bedrock"}}, []string{"AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-2"},
			"https://bedrock-mantle.us-east-1.api.aws/anthropic", "", ""},
		"bedrock, default region and key": {llm.Entry{Info: llm.Info{Provider: "bedrock"}}, []string{"AWS_DEFAULT_REGION=us-east-2", "AWS_BEARER_TOKEN_BEDROCK=k"},
			"https://bedrock-mantle.us-east-2.api.aws/anthropic", "AWS_BEARER_TOKEN_BEDROCK", ""},
		"bedrock behind a proxy":         {llm.Entry{Info: llm.Info{Provider: "bedrock"}, BaseURL: "http://proxy", APIKeyEnv: "MINE"}, []string{"MINE=k"}, "http://proxy", "MINE", ""},
		"bedrock behind a proxy, signed": {llm.Entry{Info: llm.Info{Provider: "bedrock"}, BaseURL: "http://proxy", Region: "us-east-1"}, nil, "http://proxy", "", ""},
		"vertex, everywhere": {llm.Entry{Info: llm.Info{Provider: "vertex"}}, []string{"GOOGLE_CLOUD_PROJECT=p"},
			"https://aiplatform.googleapis.com/v1/projects/p/locations/global", "", ""},
		"vertex, several regions": {llm.Entry{Info: llm.Info{Provider: "vertex"}, Region: "eu", Project: "p"}, []string{"CLOUD_ML_REGION=us", "GOOGLE_CLOUD_PROJECT=other"},
			"https://aiplatform.eu.rep.googleapis.com/v1/projects/p/locations/eu", "", ""},
		"vertex, one region": {llm.Entry{Info: llm.Info{Provider: "vertex"}},
			[]string{"CLOUD_ML_REGION=us-east5", "GOOGLE_CLOUD_LOCATION=us", "ANTHROPIC_VERTEX_PROJECT_ID=p", "GOOGLE_CLOUD_PROJECT=other"},
			"https://us-east5-aiplatform.googleapis.com/v1/projects/p/locations/us-east5", "", ""},
		"vertex, location of Google's tools": {llm.Entry{Info: llm.Info{Provider: "vertex"}, Project: "a.test:p/q"}, []string{"GOOGLE_CLOUD_LOCATION=us"},
			"https://aiplatform.us.rep.googleapis.com/v1/projects/a.test:p%2Fq/locations/us", "", ""},
		"vertex behind a proxy": {llm.Entry{Info: llm.Info{Provider: "vertex"}, BaseURL: "http://proxy/v1/", APIKeyEnv: "MINE", Project: "p"}, []string{"MINE=k"},
			"http://proxy/v1/projects/p/locations/global", "MINE", ""},
		"no region":                 {llm.Entry{Info: llm.Info{Provider: "bedrock"}}, nil, "", "", "AWS_REGION"},
		"no region for a signature": {llm.Entry{Info: llm.Info{Provider: "bedrock"}, BaseURL: "http://proxy"}, nil, "", "", "AWS_REGION"},
		"a region that is none":     {llm.Entry{Info: llm.Info{Provider: "bedrock"}, Region: "us.evil.test/"}, nil, "", "", "AWS_REGION"},
		"a named key":               {llm.Entry{Info: llm.Info{Provider: "bedrock"}, Region: "us-east-1", APIKeyEnv: "MINE"}, nil, "", "", "MINE"},
		"no project":                {llm.Entry{Info: llm.Info{Provider: "vertex"}}, nil, "", "", "GOOGLE_CLOUD_PROJECT"},
		"a location that is none":   {llm.Entry{Info: llm.Info{Provider: "vertex"}, Region: "evil.test/", Project: "p"}, nil, "", "", "location"},
		"a named token":             {llm.Entry{Info: llm.Info{Provider: "vertex"}, Project: "p", APIKeyEnv: "MINE"}, nil, "", "", "MINE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.entry.Name = "m"
			got, err := newRegistry(t, []llm.Entry{tt.entry}, llm.Defaults{Env: variables(tt.env...)}).Resolve("m")
			switch {
			case tt.fault != "":
				compare.True(t, errors.Is(err, core.ErrInvalid) && strings.Contains(err.Error(), tt.fault), "got %v, want a fault that names %s", err, tt.fault)
			case err != nil || got.BaseURL != tt.base || got.APIKeyEnv != tt.keyFrom:
				t.Errorf("got %q with the key in %q, %v, want %q, %q", got.BaseURL, got.APIKeyEnv, err, tt.base, tt.keyFrom)
			}
		})
	}
}

// A model gets a PDF as a file as files.native_pdf says, if it is small and its text is
// there to fall back on.
func TestTakesDocuments(t *testing.T) {
	t.Parallel()
	scan := core.Part{Type: core.PartFile, MediaType: "application/pdf", Size: 1 << 20, Pages: 20, Blank: 1, Extracted: true}
	with := func(change func(*core.Part)) core.Part {
		p := scan
		change(&p)
		return p
	}
	text := with(func(p *core.Part) { p.Blank = 0 })
	for name, c := range map[string]struct {
		documents llm.Documents
		part      core.Part
		want      bool
	}{
		"scanned: a scan":     {llm.DocumentsScanned, scan, true},
		"scanned: text alone": {llm.DocumentsScanned, text, false},
		"always: text alone":  {llm.DocumentsAlways, text, true},
		"never":               {llm.DocumentsNever, scan, false},
		"nothing said":        {"", scan, false},
		"21 pages":            {llm.DocumentsAlways, with(func(p *core.Part) { p.Pages = 21 }), false},
		"unknown pages":       {llm.DocumentsAlways, with(func(p *core.Part) { p.Pages = 0 }), false},
		"too large":           {llm.DocumentsAlways, with(func(p *core.Part) { p.Size = 14<<20 + 1 }), false},
		"not read":            {llm.DocumentsAlways, with(func(p *core.Part) { p.Extracted = false }), false},
		"no PDF":              {llm.DocumentsAlways, with(func(p *core.Part) { p.MediaType = "text/html" }), false},
		"an image":            {llm.DocumentsAlways, core.Part{Type: core.PartImage, MediaType: "image/png"}, false},
	} {
		compare.Equal(t, name, c.want, (llm.Info{Documents: c.documents}).Takes(c.part))
	}
}

// PDFs go as files to models that see images at the own address of OpenAI or Anthropic; to
// others where the operator says so.
func TestWhichModelsGetDocuments(t *testing.T) {
	t.Parallel()
	no, yes := false, true
	entries := []llm.Entry{
		{Info: llm.Info{Name: "own server", Provider: "openai"}, Model: "gpt-4o", BaseURL: "http://127.0.0.1:8000/v1"},
		{Info: llm.Info{Name: "server that does", Provider: "openai", Documents: llm.DocumentsAlways}, Model: "x", BaseURL: "http://127.0.0.1:8000/v1"},
		{Info: llm.Info{Name: "told not to", Provider: "openai", Documents: llm.DocumentsNever}, Model: "gpt-4o"},
		{Info: llm.Info{Name: "blind", Provider: "openai"}, Model: "gpt-4o", SeesImages: &no},
		{Info: llm.Info{Name: "told to see", Provider: "openai"}, Model: "new", SeesImages: &yes},
	}
	defaults := llm.Defaults{
		Images:    func(model string) bool { return model != "new" },
		Documents: func(string) llm.Documents { return llm.DocumentsScanned },
	}
	keys := []string{"OPENAI_API_KEY=a", "ANTHROPIC_API_KEY=b", "GEMINI_API_KEY=c", "OPENROUTER_API_KEY=d"}
	for name, want := range map[string]llm.Documents{
		"gpt-4o": llm.DocumentsScanned, "claude-sonnet-4-5": llm.DocumentsScanned, "gemini-2.5-flash": "", "openrouter/openai/gpt-4o": "",
		"ollama/llava": "", "own server": "", "server that does": llm.DocumentsAlways, "told not to": llm.DocumentsNever, "blind": "", "told to see": llm.DocumentsScanned,
	} {
		defaults.Env = variables(keys...)
		compare.Equal(t, fmt.Sprintf("%s: m.Info().Documents", name), want, must.Get(newRegistry(t, entries, defaults).Get(name))(t).Info().Documents)
	}
	defaults.Env = variables(append(keys, "OPENAI_BASE_URL=http://127.0.0.1:8000/v1")...)
	compare.Equal(t, "another address in the environment: m.Info().Documents: want no documents", "", must.Get(newRegistry(t, entries, defaults).Get("gpt-4o"))(t).Info().Documents)
}
