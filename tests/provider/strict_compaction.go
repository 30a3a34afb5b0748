package provider

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Anthropic's compaction on demand, by platform.claude.com/docs/en/build-with-claude/
// compaction-on-demand and compaction-thinking-blocks (read 2026-11). The block replaces the
// messages that it summarizes. Thoughts in the messages directly after it stay valid if system and
// tools are the same and the first one has another role than the last one summarized, which is not
// system. Another model takes the block, too; another account does not, which is assumed.

// checkCompaction checks the compaction with which the messages begin. The prefix begins with it.
func (c *conversation) checkCompaction(raw json.RawMessage) *refusal {
	if r := c.checkCompactionFields(raw); r != nil {
		return r
	}
	b := decoded(raw)
	s, ok := c.v.open(b.Signature)
	switch {
	case !ok || s.Account != c.v.Account || s.Role == "" || c.v.refusesBlob():
		return &refusal{"messages.0.content.0: Invalid `signature` in `compaction` block", "compaction_signature_invalid"}
	case b.Content == nil || s.Text != digest(*b.Content):
		return &refusal{"messages.0.content.0: the `content` of the `compaction` block does not match its `signature`", "compaction_content_mismatch"}
	}
	c.compacted = *b.Content
	var kept prefix
	if first := c.firstKeptRole(); s.Config == c.config && first != s.Role && first != "system" {
		kept = s.Prefix
	}
	c.prefix = append(kept[:len(kept):len(kept)], digest(c.config, b.Signature))
	return nil
}

// checkCompactionFields refuses a block that has other fields than the API returned.
func (c *conversation) checkCompactionFields(raw json.RawMessage) *refusal {
	if !c.has(betaCompact) {
		return refusef("messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return refusef("messages.0.content.0: %v", err)
	}
	for name := range fields {
		switch name {
		case "type", "content", "signature", "cache_control", "encrypted_content", "tool_changes":
		default:
			return refusef("messages.0.content.0.compaction.%s: Extra inputs are not permitted", name)
		}
	}
	return nil
}

// firstKeptRole returns the role of what follows the compaction, "" = nothing.
func (c *conversation) firstKeptRole() string {
	messages := c.req.Messages
	switch {
	case len(messages[0].Content) > 1:
		return messages[0].Role
	case len(messages) > 1:
		return messages[1].Role
	default:
		return ""
	}
}

// refuseMisplaced refuses a compaction that is not the first block.
func (c *conversation) refuseMisplaced(path string) *refusal {
	if c.compacted != "" {
		return refusef("%s: a request carries at most one `compaction` block", path)
	}
	return &refusal{path + ": the `compaction` block must come first in `messages`", "compaction_block_misplaced"}
}

// compaction returns the block that replaces the messages.
func (c *conversation) compaction(content string) map[string]any {
	role := c.role
	if role == "" { // nothing but an earlier compaction
		role = "assistant"
	}
	return map[string]any{
		"type": "compaction", "content": content,
		"signature": c.v.sign(seal{Account: c.v.Account, Model: c.req.Model, Text: digest(content), Config: c.config, Prefix: c.prefix, Role: role}),
	}
}

// transcript returns the messages as a summary's request has them.
func (r Received) transcript() string {
	var lines []string
	for _, m := range r.Messages {
		lines = append(lines, fmt.Sprintf("[%s] %s", m.Role, m.Text))
	}
	return "<transcript>\n" + strings.Join(lines, "\n") + "\n</transcript>"
}
