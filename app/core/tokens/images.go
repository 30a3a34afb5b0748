package tokens

import (
	"slices"
	"strings"
)

// SeesImages reports whether a model of that name takes images, as its provider
// says. Names are compared as in Models.Lookup; one that is not known sees none.
func SeesImages(name string) bool {
	name = normalize(name)
	begins := func(prefix string) bool { return isPrefix(prefix, name) }
	if slices.ContainsFunc([]string{"audio", "transcribe", "tts", "realtime", "embedding"}, func(word string) bool { return strings.Contains(name, word) }) {
		return false
	}
	return slices.ContainsFunc(seeing(), begins) && !slices.ContainsFunc(blind(), begins)
}

// seeing are the beginnings of the names of models that see images.
func seeing() []string {
	return []string{
		"gpt-4o", "chatgpt-4o", "gpt-4-turbo", "gpt-4-vision", "gpt-4-1", "gpt-4-5", "gpt-5", "o1", "o3", "o4-mini", "codex-mini",
		"claude", "gemini", "gemma-3", "gemma3", "pixtral", "llama-4", "llama4", "llama-3-2-11b-vision", "llama-3-2-90b-vision",
		"llama3-2-vision", "llava", "bakllava", "minicpm-v", "moondream", "qwen-vl", "qwen2-vl", "qwen2-5-vl", "qwen2-5vl", "qwen-2-5-vl",
		"qwen3-vl", "grok-4", "nova", "mistral-small-2503", "mistral-small-2506", "mistral-small3-1", "mistral-small3-2", "mistral-medium",
	}
}

// blind are those among them that do not.
func blind() []string {
	return []string{
		"o1-mini", "o1-preview", "o3-mini", "claude-instant", "claude-2", "claude-1", "gemini-pro", "gemini-1-0",
		"gemma-3-1b", "gemma-3n", "gemma3n", "nova-micro",
	}
}
