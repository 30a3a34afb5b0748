package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
)

// PromptSetup is what the prompts of an agent begin with: its system prompt and its tools. It is
// stored with a session whose thoughts are bound to it, since the agent may change.
type PromptSetup struct {
	Hash         string // of the texts, 16 characters
	SystemPrompt string
	ToolUsage    string          // instructions for the use of tools; empty = none
	Tools        json.RawMessage // list of the definitions
}

// MaxPromptSetup bounds the bytes of a setup that is stored.
const MaxPromptSetup = 256 << 10

// setupHash is how many bytes of the hash are stored with a thought.
const setupHash = 12

// NewPromptSetup returns the setup of the texts with its hash; false if it cannot be stored: it is
// too large, or has characters that would not come back.
func NewPromptSetup(systemPrompt, toolUsage string, tools json.RawMessage) (s PromptSetup, storable bool) {
	s = PromptSetup{SystemPrompt: systemPrompt, ToolUsage: toolUsage, Tools: tools}
	fields := []string{systemPrompt, toolUsage, string(tools)}
	size, all := 0, []byte(nil)
	for _, f := range fields {
		size += len(f)
		all = append(binary.AppendUvarint(all, uint64(len(f))), f...)
	}
	sum := sha256.Sum256(all)
	s.Hash = base64.RawURLEncoding.EncodeToString(sum[:setupHash])
	return s, size <= MaxPromptSetup && CleanText(systemPrompt) == systemPrompt
}
