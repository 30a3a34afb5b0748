package config

import "time"

// Model is an entry of models: it extends the built-in table or overrides it.
type Model struct {
	Name            string        `key:"name"`                                                                                                    // what agents call it
	Provider        string        `key:"provider" words:"openai,anthropic,gemini,ollama,mistral,openrouter,bedrock,vertex,demo,langchain/ollama"` // any other server of OpenAI's dialect is "openai" with a base_url
	Model           string        `key:"model"`                                                                                                   // what the provider calls it; empty = Name
	BaseURL         string        `key:"base_url"`                                                                                                // empty = the provider's own
	Region          string        `key:"region"`                                                                                                  // for providers bedrock and vertex; empty = of the environment
	Project         string        `key:"project"`                                                                                                 // of Google Cloud, for provider vertex; empty = of the environment
	API             string        `key:"api" words:",chat,responses"`                                                                             // for provider openai; empty = chat
	APIKeyEnv       string        `key:"api_key_env"`                                                                                             // name of the environment variable that holds the key; empty = the provider's usual one
	ContextWindow   int           `key:"context_window" range:"0|1024.."`                                                                         // tokens; 0 = by the model's name
	MaxOutputTokens int           `key:"max_output_tokens"`                                                                                       // 0 = by the model's name
	Encoding        string        `key:"encoding" words:",cl100k_base,o200k_base"`                                                                // empty = by the model's name
	InputPrice      float64       `key:"input_price" range:"0..1000000"`                                                                          // US dollars per million tokens; 0 = not known
	OutputPrice     float64       `key:"output_price" range:"0..1000000"`
	CacheReadPrice  float64       `key:"cache_read_price" range:"0..1000000"`                        // of the part of a prompt that the provider had cached; 0 = InputPrice
	CacheWritePrice float64       `key:"cache_write_price" range:"0..1000000"`                       // of the part that it put into its cache; 0 = InputPrice
	ThinkingBudget  int           `key:"thinking_budget" range:"0|1024.."`                           // tokens, for models of Claude; 0 = no thinking
	Images          *bool         `key:"images"`                                                     // whether it sees images; nil = by the model's name
	Documents       *bool         `key:"documents"`                                                  // whether it gets PDFs as files; nil = by the provider and the model's name
	Slots           int           `key:"slots" range:"0.."`                                          // requests that its server works on at once; 0 = found out
	FirstByteTime   time.Duration `key:"first_byte_time" range:"0|1s.."`                             // until its server begins to answer; 0 = by the address
	IdleTime        time.Duration `key:"idle_time" range:"0|1s.."`                                   // between two pieces of the answer; 0 = by the address
	MaxTokensField  string        `key:"max_tokens_field" words:",max_tokens,max_completion_tokens"` // empty = by the server
	OpensThought    bool          `key:"prompt_opens_thought"`                                       // its chat template writes the begin tag of a thought at the end of the prompt
	PrefixContract  string        `key:"prefix_contract" words:",free,drops,refuses"`                // empty = by the model's name
}

// PriorFactor returns how many of the model's tokens one cl100k_base token is
// expected to be before anything was measured; 0 = by the model's name.
func (m Model) PriorFactor() float64 {
	if m.Encoding == "" {
		return 0
	}
	return 1 // o200k_base has no more tokens than cl100k_base but in rare texts
}

// APIResponses is the API of OpenAI's models that gives their reasoning back.
const APIResponses = "responses"
