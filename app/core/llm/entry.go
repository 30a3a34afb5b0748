package llm

import (
	"cmp"
	"net/netip"
	"net/url"
	"regexp"
	"strings"
	"time"

	"bobbin/app/core"
)

// The providers by their names in settings and errors. Any other name is of a server of the OpenAI dialect,
// with its BaseURL.
const (
	ProviderOpenAI     = "openai"
	ProviderAnthropic  = "anthropic"
	ProviderGemini     = "gemini"
	ProviderOllama     = "ollama"
	ProviderMistral    = "mistral"
	ProviderOpenRouter = "openrouter"
	ProviderBedrock    = "bedrock" // Claude on Amazon Bedrock
	ProviderVertex     = "vertex"  // Claude on Google Vertex AI
	ProviderDemo       = "demo"

	ProviderLangchainOllama = "langchain/ollama"
)

// Entry is a model that the registry can open: one of the configuration, or one
// that was inferred from a name.
type Entry struct {
	Info // what is configured, zero = by the name or not known; Provider may be any server of the OpenAI dialect

	Model         string        // what the provider calls it; empty = Name
	Responses     bool          // for openai: it is called over the Responses API, not Chat Completions
	BaseURL       string        // empty = the provider's own
	Region        string        // for bedrock and vertex; empty = of the environment
	Project       string        // for vertex; empty = of the environment
	APIKeyEnv     string        // the environment variable that holds the key; empty = the provider's usual one, if it has any
	SeesImages    *bool         // nil = by the model's name; Images says it then
	FirstByteTime time.Duration // until its server begins to answer; 0 = by the address, negative = no limit
	IdleTime      time.Duration // between two pieces of the answer; 0 = by the address, negative = no limit
	Slots         int           // max concurrent calls to its server; 0 = no limit
	Thinking      int           // budget for thinking in tokens, for anthropic; 0 = off
	// MaxTokensField is the member of a request that holds the output limit, for openai;
	// empty = by the server.
	MaxTokensField string
}

// TakesMaxTokens reports whether the model's server takes the output limit as max_tokens.
// OpenAI's newer models refuse that name, wherever they are. The servers of others that
// speak its dialect (llama.cpp, LM Studio, vLLM, TGI) all know it, and several ignore
// max_completion_tokens.
func (e Entry) TakesMaxTokens() bool {
	if e.MaxTokensField != "" {
		return e.MaxTokensField == "max_tokens"
	}
	own := providerOf(e.Model) == ProviderOpenAI && !strings.HasPrefix(strings.ToLower(e.Model), "gpt-oss")
	return e.BaseURL != "" && !own && !strings.Contains(e.BaseURL, "://api.openai.com/")
}

// inferEntry returns the entry of a name that is not configured: "demo", a provider
// and a model ("ollama/llama3.2"), or a model whose provider follows from its name.
func inferEntry(name string) (Entry, bool) {
	if name == ProviderDemo {
		return Entry{Info: Info{Name: name, Provider: ProviderDemo}}, true
	}
	if provider, model, ok := strings.Cut(name, "/"); ok && model != "" {
		switch provider {
		case ProviderOpenAI, ProviderAnthropic, ProviderGemini, ProviderOllama, ProviderMistral, ProviderOpenRouter, ProviderBedrock, ProviderVertex:
			return Entry{Info: Info{Name: name, Provider: provider}, Model: model}, true
		case "langchain":
			if client, model, ok := strings.Cut(model, "/"); ok && model != "" && client == ProviderOllama {
				return Entry{Info: Info{Name: name, Provider: ProviderLangchainOllama}, Model: model}, true
			}
		}
	}
	if provider := providerOf(name); provider != "" {
		return Entry{Info: Info{Name: name, Provider: provider}, Model: name}, true
	}
	return Entry{}, false
}

// providerOf returns the provider of a model by the beginning of its name.
func providerOf(model string) string {
	model = strings.TrimPrefix(strings.ToLower(model), "ft:")
	switch {
	case openAIModel.MatchString(model):
		return ProviderOpenAI
	case strings.HasPrefix(model, "claude-"):
		return ProviderAnthropic
	case strings.HasPrefix(model, "gemini-"), strings.HasPrefix(model, "models/gemini-"):
		return ProviderGemini
	default:
		return ""
	}
}

// openAIModel begins the names of OpenAI's models, o1 and o3-mini among them.
var openAIModel = regexp.MustCompile(`^(?:chat)?gpt-|^o[1-9](?:-|$)`)

// isOllama reports whether the provider is Ollama, through either of its APIs.
func isOllama(provider string) bool {
	return provider == ProviderOllama || provider == ProviderLangchainOllama
}

// mayBeSlow reports whether the server may take minutes to read a prompt before its first byte: it
// is small, or somebody's own.
func (e Entry) mayBeSlow() bool {
	if e.Slots == 1 || isOllama(e.Provider) {
		return true
	}
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Hostname() == "" {
		return false
	}
	host := strings.ToLower(u.Hostname())
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast()
	}
	return !strings.Contains(host, ".") || strings.HasSuffix(host, ".local") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".localhost")
}

// withEnvironment fills in the provider's address from the environment, and checks that
// the key is set. It does not use the key.
func (e Entry) withEnvironment(env func(string) string) (Entry, error) {
	e.Model, e.Provider = cmp.Or(e.Model, e.Name), cmp.Or(e.Provider, ProviderOpenAI)
	isNamed := e.APIKeyEnv != "" // then the key must be set, wherever the model is
	if !isNamed {
		e.APIKeyEnv = map[string]string{ // where it is usually kept
			ProviderOpenAI: "OPENAI_API_KEY", ProviderAnthropic: "ANTHROPIC_API_KEY", ProviderGemini: "GEMINI_API_KEY",
			ProviderMistral: "MISTRAL_API_KEY", ProviderOpenRouter: "OPENROUTER_API_KEY", ProviderBedrock: "AWS_BEARER_TOKEN_BEDROCK",
		}[e.Provider]
	}
	needed := e.APIKeyEnv != "" && (isNamed || e.BaseURL == "" && e.Provider != ProviderBedrock)
	if needed && env(e.APIKeyEnv) == "" {
		return e, core.Errorf(core.ErrInvalid, "model %s needs an API key: set %s", e.Name, e.APIKeyEnv)
	}
	switch e.Provider {
	case ProviderBedrock:
		// Without a key requests are signed with the credentials that AWS's tools find.
		e.Region = cmp.Or(e.Region, env("AWS_REGION"), env("AWS_DEFAULT_REGION"))
		if env(e.APIKeyEnv) == "" {
			e.APIKeyEnv = ""
		}
		if e.BaseURL != "" && e.APIKeyEnv != "" {
			return e, nil
		}
		if !regionName.MatchString(e.Region) {
			return e, core.Errorf(core.ErrInvalid, "model %s needs a region of AWS: set region in its entry of models, or AWS_REGION", e.Name)
		}
		e.BaseURL = cmp.Or(e.BaseURL, "https://bedrock-mantle."+e.Region+".api.aws/anthropic")
		return e, nil
	case ProviderVertex:
		e.Region = cmp.Or(e.Region, env("CLOUD_ML_REGION"), env("GOOGLE_CLOUD_LOCATION"), "global")
		e.Project = cmp.Or(e.Project, env("ANTHROPIC_VERTEX_PROJECT_ID"), env("GOOGLE_CLOUD_PROJECT"))
		if e.Project == "" {
			return e, core.Errorf(core.ErrInvalid, "model %s needs a project of Google Cloud: set project in its entry of models, or GOOGLE_CLOUD_PROJECT", e.Name)
		}
		if !regionName.MatchString(e.Region) {
			return e, core.Errorf(core.ErrInvalid, "model %s: the region is not a location of Google Cloud", e.Name)
		}
		base := strings.TrimSuffix(strings.TrimRight(cmp.Or(e.BaseURL, vertexURL(e.Region)), "/"), "/v1")
		e.BaseURL = base + "/v1/projects/" + url.PathEscape(e.Project) + "/locations/" + e.Region
		return e, nil
	}
	if e.BaseURL == "" {
		switch e.Provider {
		case ProviderOpenAI:
			e.BaseURL = env("OPENAI_BASE_URL")
		case ProviderAnthropic:
			e.BaseURL = env("ANTHROPIC_BASE_URL")
		case ProviderOllama:
			e.BaseURL = ollamaURL(env) + "/v1"
		case ProviderLangchainOllama:
			e.BaseURL = ollamaURL(env)
		}
	}
	return e, nil
}

// regionName is what a region may be called: it is part of a host name.
var regionName = regexp.MustCompile(`^[a-z0-9-]+$`)

// vertexURL returns the address of a location.
func vertexURL(location string) string {
	switch location {
	case "global":
		return "https://aiplatform.googleapis.com"
	case "us", "eu": // several regions
		return "https://aiplatform." + location + ".rep.googleapis.com"
	default:
		return "https://" + location + "-aiplatform.googleapis.com"
	}
}

// Version is the version in a model's name: 4, 5 for claude-sonnet-4-5-20250929. Zero = the name does
// not say.
type Version [2]int

// IsSince reports whether the version is this one or later.
func (v Version) IsSince(major, minor int) bool {
	return v[0] > major || v[0] == major && v[1] >= minor
}

// ClaudeOf returns the family and the version of a Claude by its name, also as proxies write it. Names
// have the family first since Claude 4, and the version first before (then there is no family).
func ClaudeOf(model string) (family string, v Version) {
	_, name, _ := strings.Cut(strings.ToLower(model), "claude-")
	if v = versionOf(name); v != (Version{}) {
		return "", v
	}
	family, rest, _ := strings.Cut(name, "-")
	if family == "mythos" && strings.HasPrefix(rest, "preview") {
		return family, Version{4, 6}
	}
	return family, versionOf(rest)
}

// versionOf reads a version at the beginning of a text: "5-5-20260901" and "5.5" are 5, 5. A
// number of more than two digits is a date.
func versionOf(text string) (v Version) {
	for i := range v {
		digits := 0
		for digits < len(text) && text[digits] >= '0' && text[digits] <= '9' {
			v[i] = v[i]*10 + int(text[digits]-'0')
			digits++
		}
		if digits == 0 || digits > 2 {
			v[i] = 0
			return v
		}
		if text = text[digits:]; text == "" || text[0] != '-' && text[0] != '.' {
			return v
		}
		text = text[1:]
	}
	return v
}
