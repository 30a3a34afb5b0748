package tokens

import (
	"slices"
	"strings"
	"sync"
)

// DefaultWindow is the context window of unknown models: small, so that a wrong guess
// cannot make a prompt too large.
const DefaultWindow = 8192

// ModelInfo describes a model's limits.
type ModelInfo struct {
	Name      string  // normalized; covers every name with this prefix that has no longer row
	Window    int     // context window in tokens, prompt and answer together
	MaxOutput int     // max tokens of an answer; 0 = not known
	Factor    float64 // the model's tokens per cl100k_base token, until it is measured
}

// knownModels is the built-in table, the longest name first.
//
//nolint:gochecknoglobals // immutable
var knownModels = sync.OnceValue(func() []ModelInfo {
	rows := builtinModels()
	slices.SortStableFunc(rows, func(a, b ModelInfo) int { return len(b.Name) - len(a.Name) })
	return rows
})

// Lookup returns the row with the longest name that is a prefix of the normalized name,
// and false if there is none. It ignores case, vendor path, "ft:", region prefix and
// ":tag"; dots and dashes between digits are equal; a date or any other suffix is covered
// by the prefix. A prefix never ends inside a number: "gpt-4-1" (that is gpt-4.1) is not
// the row of "gpt-4-1106-preview".
func Lookup(name string) (ModelInfo, bool) {
	name = normalizeName(name)
	for _, row := range knownModels() {
		if isPrefix(row.Name, name) {
			return row, true
		}
	}
	return ModelInfo{}, false
}

// Assume is Lookup with a result for every name: an unknown model has DefaultWindow.
// False = the model is not known.
func Assume(name string) (ModelInfo, bool) {
	if row, ok := Lookup(name); ok {
		return row, true
	}
	return ModelInfo{Name: normalizeName(name), Window: DefaultWindow, Factor: 1}, false
}

// isPrefix reports whether name begins with prefix, and prefix does not end inside a
// number.
func isPrefix(prefix, name string) bool {
	if !strings.HasPrefix(name, prefix) {
		return false
	}
	if len(name) == len(prefix) || prefix == "" {
		return prefix != ""
	}
	return !isDigit(prefix[len(prefix)-1]) || !isDigit(name[len(prefix)])
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }

// normalizeName returns the name in the form of the table.
func normalizeName(name string) string {
	s := strings.ToLower(strings.TrimSpace(name))
	if tuned, ok := strings.CutPrefix(s, "ft:"); ok {
		s, _, _ = strings.Cut(tuned, ":") // what follows names the owner's job
	}
	s = s[strings.LastIndexByte(s, '/')+1:]
	s, _, _ = strings.Cut(s, ":")
	s = cutLabel(s, "us", "us-gov", "eu", "apac", "ap", "au", "ca", "jp", "sa", "global")
	s = cutLabel(s, "ai21", "amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax", "mistral", "moonshot", "moonshotai",
		"nvidia", "openai", "qwen", "writer", "xai", "zai")
	b := []byte(s)
	for i := 1; i+1 < len(b); i++ {
		if b[i] == '.' && isDigit(b[i-1]) && isDigit(b[i+1]) {
			b[i] = '-'
		}
	}
	return string(b)
}

// cutLabel removes the first of the labels that s begins with, and its dot: the
// region and the vendor in "us.anthropic.claude-3-5-sonnet-20241022-v2:0".
func cutLabel(s string, labels ...string) string {
	label, rest, ok := strings.Cut(s, ".")
	if ok && slices.Contains(labels, label) {
		return rest
	}
	return s
}

// SeesImages reports whether the model accepts images, according to its provider. It
// compares names as Lookup does; false for unknown models.
func SeesImages(name string) bool {
	name = normalizeName(name)
	begins := func(prefix string) bool { return isPrefix(prefix, name) }
	if slices.ContainsFunc([]string{"audio", "transcribe", "tts", "realtime", "embedding"}, func(word string) bool { return strings.Contains(name, word) }) {
		return false
	}
	return slices.ContainsFunc([]string{ // but for the exceptions of the second list
		"gpt-4o", "chatgpt-4o", "gpt-4-turbo", "gpt-4-vision", "gpt-4-1", "gpt-4-5", "gpt-5", "o1", "o3", "o4-mini", "codex-mini",
		"claude", "gemini", "gemma-3", "gemma3", "pixtral", "llama-4", "llama4", "llama-3-2-11b-vision", "llama-3-2-90b-vision",
		"llama3-2-vision", "llava", "bakllava", "minicpm-v", "moondream", "qwen-vl", "qwen2-vl", "qwen2-5-vl", "qwen2-5vl", "qwen-2-5-vl",
		"qwen3-vl", "grok-4", "nova", "mistral-small-2503", "mistral-small-2506", "mistral-small3-1", "mistral-small3-2", "mistral-medium",
	}, begins) && !slices.ContainsFunc([]string{
		"o1-mini", "o1-preview", "o3-mini", "claude-instant", "claude-2", "claude-1", "gemini-pro", "gemini-1-0",
		"gemma-3-1b", "gemma-3n", "gemma3n", "nova-micro",
	}, begins)
}

// ReadsPDF reports whether a model of that name accepts PDFs where it is known to accept
// images: OpenAI's models do from gpt-4o on.
func ReadsPDF(name string) bool {
	name = normalizeName(name)
	return SeesImages(name) && !isPrefix("gpt-4-turbo", name) && !isPrefix("gpt-4-vision", name)
}
