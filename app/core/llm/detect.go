package llm

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The models that are used when nothing is configured.
const (
	DefaultOpenAIModel    = "gpt-4o-mini"
	DefaultAnthropicModel = "claude-haiku-5-5"
	// DefaultGeminiModel is Google's name for its newest flash model: each single
	// version is shut down after about a year.
	DefaultGeminiModel = "gemini-flash-latest"
)

// probeTime is how long a local Ollama may take to answer at start-up.
const probeTime = 300 * time.Millisecond

// Choice is the default model.
type Choice struct {
	Model  string // as Registry.Get takes it
	Reason string
}

// String returns the model and the reason, for the start-up line. It never holds a
// key.
func (c Choice) String() string { return fmt.Sprintf("model %s: %s", c.Model, c.Reason) }

// Detect chooses the default model: the configured one; else OpenAI's,
// Anthropic's or Gemini's, the first whose key is in the environment; else the
// first chat model of a local Ollama; else the demonstration. Env reads an environment
// variable. Probe returns the models of the Ollama at an address without a path, the last changed first;
// it gets 300 ms.
func Detect(ctx context.Context, configured string, env func(string) string, probe func(ctx context.Context, url string) ([]string, error)) Choice {
	if configured != "" {
		return Choice{configured, "default_llm is configured"}
	}
	for _, p := range []struct{ model, key, base string }{
		{DefaultOpenAIModel, "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{DefaultAnthropicModel, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		{DefaultGeminiModel, "GEMINI_API_KEY", ""},
	} {
		if env(p.key) == "" {
			continue
		}
		reason := p.key + " is set"
		if base := env(p.base); p.base != "" && base != "" {
			reason += ", at " + Redacted(base)
		}
		return Choice{p.model, reason}
	}
	address := ollamaURL(env)
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	models, err := probe(ctx, address)
	if i := slices.IndexFunc(models, func(model string) bool { return model != "" && !notChat.MatchString(model) }); err == nil && i >= 0 {
		return Choice{ProviderOllama + "/" + models[i], "Ollama runs at " + Redacted(address)}
	}
	reason := "no Ollama answers at " + Redacted(address)
	if err == nil {
		reason = "the Ollama at " + Redacted(address) + " has no chat model"
	}
	return Choice{ProviderDemo, "none of OPENAI_API_KEY, ANTHROPIC_API_KEY and GEMINI_API_KEY is set, and " + reason}
}

// notChat is in the names of models that embed or rank.
var notChat = regexp.MustCompile(`(?i)embed|minilm|bge-|rerank|paraphrase-`)

// ollamaURL returns the address of Ollama without a path. OLLAMA_HOST may be a
// host, a host with a port, or an address; where Ollama listens on all
// interfaces it is asked on this machine.
func ollamaURL(env func(string) string) string {
	host := strings.TrimSpace(env("OLLAMA_HOST"))
	scheme := "http"
	if s, rest, ok := strings.Cut(host, "://"); ok {
		scheme, host = s, rest
	}
	host, _, _ = strings.Cut(host, "/")
	name, port, err := net.SplitHostPort(host)
	if err != nil {
		name, port = strings.Trim(host, "[]"), "11434"
		if scheme == "https" {
			port = "443"
		}
	}
	if name == "" || name == "0.0.0.0" || name == "::" {
		name = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(name, port)
}

// Redacted returns the address without credentials and parameters.
func Redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" && !strings.HasPrefix(u.Path, "/") {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
