package config

import "time"

// Model is an entry of models: it extends the built-in table or overrides it.
type Model struct {
	Name            string  // what agents call it
	Provider        string  // one of Providers
	Model           string  // what the provider calls it; empty = Name
	BaseURL         string  // empty = the provider's own
	Region          string  // for providers bedrock and vertex; empty = of the environment
	Project         string  // of Google Cloud, for provider vertex; empty = of the environment
	API             string  // one of ModelAPIs, for provider openai; empty = chat
	APIKeyEnv       string  // name of the environment variable that holds the key; empty = the provider's usual one
	ContextWindow   int     // tokens; 0 = by the model's name
	MaxOutputTokens int     // 0 = by the model's name
	Encoding        string  // one of Encodings; empty = by the model's name
	InputPrice      float64 // US dollars per million tokens; 0 = not known
	OutputPrice     float64
	CacheReadPrice  float64       // of the part of a prompt that the provider had cached; 0 = InputPrice
	CacheWritePrice float64       // of the part that it put into its cache; 0 = InputPrice
	ThinkingBudget  int           // tokens, for models of Claude; 0 = no thinking
	Images          *bool         // whether it sees images; nil = by the model's name
	Documents       *bool         // whether it gets PDFs as files; nil = by the provider and the model's name
	Slots           int           // requests that its server works on at once; 0 = found out
	FirstByteTime   time.Duration // until its server begins to answer; 0 = by the address
	IdleTime        time.Duration // between two pieces of the answer; 0 = by the address
	MaxTokensField  string        // one of MaxTokensFields; empty = by the server
	PrefixContract  string        // one of PrefixContracts; empty = by the model's name
}

// PriorFactor returns how many of the model's tokens one cl100k_base token is
// expected to be before anything was measured; 0 = by the model's name.
func (m Model) PriorFactor() float64 {
	if m.Encoding == "" {
		return 0
	}
	return 1 // o200k_base has no more tokens than cl100k_base but in rare texts
}

// Providers returns the words that a model's provider takes. Any other server of
// OpenAI's dialect is "openai" with a base_url.
func Providers() []string {
	return []string{"openai", "anthropic", "gemini", "ollama", "mistral", "openrouter", "bedrock", "vertex", "demo",
		"langchain/ollama"}
}

// Encodings returns the words that a model's encoding takes.
func Encodings() []string { return []string{"cl100k_base", "o200k_base"} }

// MaxTokensFields returns the words that a model's max_tokens_field takes.
func MaxTokensFields() []string { return []string{"max_tokens", "max_completion_tokens"} }

// PrefixContracts returns the words that a model's prefix_contract takes.
func PrefixContracts() []string { return []string{"free", "drops", "refuses"} }

// APIResponses is the API of OpenAI's models that gives their reasoning back.
const APIResponses = "responses"

// ModelAPIs returns the words that a model's api takes.
func ModelAPIs() []string { return []string{"chat", APIResponses} }

// ModelKeys returns the keys of an entry of models, in the order in which they are
// documented.
func ModelKeys() []Key {
	var keys []Key
	for _, f := range modelFields() {
		keys = append(keys, Key{Name: f.name, Meaning: f.meaning})
	}
	return keys
}

// modelField is a key of an entry of models.
type modelField struct {
	name    string
	meaning string
	field   func(*Model) any
}

func modelFields() []modelField {
	return []modelField{
		{"name", "the name that agents use", func(m *Model) any { return &m.Name }},
		{"provider", "`openai` (and every OpenAI-compatible server, with `base_url`), `anthropic`, `gemini`, `ollama`, `mistral`, `openrouter`, `bedrock` (Claude on Amazon Bedrock), `vertex` (Claude on Google Vertex AI), `demo`; or langchaingo's client of Ollama, `langchain/ollama`, which takes no tools", func(m *Model) any { return &m.Provider }},
		{"model", "the provider's name of the model; empty: `name`", func(m *Model) any { return &m.Model }},
		{"api", "`openai` only: `chat` (Chat Completions, which every compatible server has) or `responses` (OpenAI's Responses API: nothing is stored there, and a reasoning model gets its earlier reasoning back, encrypted, instead of thinking again; neither `stop` nor `seed`). Empty: `chat`", func(m *Model) any { return &m.API }},
		{"base_url", "the address of the provider; empty: its own", func(m *Model) any { return &m.BaseURL }},
		{"region", "`bedrock`: the region of AWS; empty: `AWS_REGION`, `AWS_DEFAULT_REGION`. `vertex`: the location, such as `eu` or `us-east5`; empty: `CLOUD_ML_REGION`, `GOOGLE_CLOUD_LOCATION`, then `global`", func(m *Model) any { return &m.Region }},
		{"project", "`vertex` only: the project of Google Cloud; empty: `ANTHROPIC_VERTEX_PROJECT_ID`, `GOOGLE_CLOUD_PROJECT`", func(m *Model) any { return &m.Project }},
		{"api_key_env", "the **name** of the environment variable that holds the key; empty: the provider's usual one", func(m *Model) any { return &m.APIKeyEnv }},
		{"context_window", "tokens, prompt and answer together; takes precedence over what the provider says when it rejects a prompt; empty: by the model's name", func(m *Model) any { return &m.ContextWindow }},
		{"max_output_tokens", "maximum tokens of an answer; empty: by the model's name", func(m *Model) any { return &m.MaxOutputTokens }},
		{"encoding", "`cl100k_base` or `o200k_base`: counts need no correction until they are measured; empty: by the model's name", func(m *Model) any { return &m.Encoding }},
		{"input_price", "US dollars per million tokens", func(m *Model) any { return &m.InputPrice }},
		{"output_price", "US dollars per million tokens", func(m *Model) any { return &m.OutputPrice }},
		{"cache_read_price", "US dollars per million tokens read from the provider's cache; empty: `input_price`", func(m *Model) any { return &m.CacheReadPrice }},
		{"cache_write_price", "US dollars per million tokens written to its cache; empty: `input_price`", func(m *Model) any { return &m.CacheWritePrice }},
		{"thinking_budget", "`anthropic`, `bedrock` and `vertex` only: tokens that the model may think before it answers, 1024 or more, included in those of the answer; from Claude 4.6 on the model decides how many, and any number turns thinking on; empty: no thinking", func(m *Model) any { return &m.ThinkingBudget }},
		{"max_tokens_field", "`openai` only: `max_tokens` or `max_completion_tokens`, the server's name of the output limit; a server that does not know the name ignores the limit. Empty: `max_completion_tokens` for models of OpenAI, `max_tokens` for others with a `base_url`", func(m *Model) any { return &m.MaxTokensField }},
		{"prefix_contract", "what it does with an earlier thought of its own (reasoning with a signature) when the prompt before it has changed: `free`, it takes the thought; `drops`, it leaves it out; `refuses`, it rejects the prompt. With the last two, thoughts stay in the prompt with every message, and only as long as it does not change before them. Empty: by the model's name, corrected by what the provider answers", func(m *Model) any { return &m.PrefixContract }},
		{"images", "`true` or `false`: whether it accepts images; otherwise they are described; empty: by the model's name", func(m *Model) any { return &m.Images }},
		{"documents", "`true` or `false`: whether it gets PDFs as files (see `files.native_pdf`), so that it sees their pages; otherwise it gets the text; empty: models of `openai` and `anthropic` that accept images do, without a `base_url`", func(m *Model) any { return &m.Documents }},
		{"first_byte_time", "how long its server may take until it begins to answer, such as `5m`; then the call counts as failed and is repeated. Empty: only `limits.run_time` (of a summary, `limits.background_summary_time`) bounds it where the server may have to read a long prompt first: on this machine, at a private address or a name without a dot, with `ollama` and with `slots: 1`; elsewhere 60s", func(m *Model) any { return &m.FirstByteTime }},
		{"idle_time", "the longest silence within an answer; empty: as `first_byte_time`, elsewhere 2m", func(m *Model) any { return &m.IdleTime }},
		{"slots", "max concurrent requests to its server, for all models at the same address together, counted in each process of Bobbin by itself; further ones wait; empty: no limit", func(m *Model) any { return &m.Slots }},
	}
}
