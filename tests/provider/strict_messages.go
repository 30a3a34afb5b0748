package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// The beta features of Anthropic that a strict provider knows.
const (
	betaBinding = "thinking-binding-controls-2026-08-01"
	betaCompact = "compact-2026-09-04"
)

// conversation is a request of Anthropic's Messages API whose history was checked.
//
// The rules are those of platform.claude.com/docs/en/build-with-claude/preserved-thinking (read
// 2026-11): system, tools and every message before a thought count, cache_control does not, nor do
// tools with defer_loading. Thoughts are not part of the prefix, but each one names the thought
// before it, so that only an unbroken run of them is valid: they may be left out at the beginning
// and at the end. A thought that was dropped for its prefix counts as left out, so that thoughts
// produced from then on stay valid while it is sent and dropped again.
//
// Assumed, because the page does not say: a content that is a text equals one text block, and the
// boundaries between messages count.
type conversation struct {
	v     *verifier
	betas []string
	req   messagesRequest

	config    string // digest of system and tools
	prefix    prefix // of what was read so far
	before    string // the last thought in the prompt
	role      string // of the last message
	compacted string // the summary in front
	known     []Tool // that are defined so far
	offered   []Tool // of these, what the model may call

	transformations []Transformation
	verified        int
}

type messagesRequest struct {
	Model             string           `json:"model"`
	System            json.RawMessage  `json:"system"`
	Tools             []deferred       `json:"tools"`
	Messages          []messageRequest `json:"messages"`
	Compaction        *compactionParam `json:"compaction"`
	ContextManagement json.RawMessage  `json:"context_management"`
	StopSequences     []string         `json:"stop_sequences"`
	ToolChoice        struct {
		Type string `json:"type"`
	} `json:"tool_choice"`
	Thinking struct {
		Type         string `json:"type"`
		Display      string `json:"display"`
		BlockBinding *struct {
			Behavior string `json:"prefix_mismatch_behavior"`
		} `json:"block_binding"`
	} `json:"thinking"`
}

type compactionParam struct {
	Type string `json:"type"`
}

type messageRequest struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

// blocks are the blocks of a content; a text is one block.
type blocks []json.RawMessage

func (b *blocks) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*b = blocks{json.RawMessage(`{"text":` + quoted(text) + `,"type":"text"}`)}
		return nil
	}
	return json.Unmarshal(raw, (*[]json.RawMessage)(b))
}

// deferred is a tool that may be one which the model does not see yet.
type deferred struct {
	json.RawMessage

	Defer bool `json:"defer_loading"`
}

func (d *deferred) UnmarshalJSON(raw []byte) error {
	d.RawMessage = slices.Clone(raw)
	var flags struct {
		Defer bool `json:"defer_loading"`
	}
	err := json.Unmarshal(raw, &flags)
	d.Defer = flags.Defer
	return err
}

// refusal is an error of the API.
type refusal struct {
	message string
	code    string // "" = none
}

func refusef(format string, args ...any) *refusal {
	return &refusal{message: fmt.Sprintf(format, args...)}
}

// write answers with the refusal in Anthropic's form.
func (r *refusal) write(w http.ResponseWriter) {
	body := map[string]any{"type": "invalid_request_error", "message": r.message}
	if r.code != "" {
		body["details"] = map[string]any{"error_code": r.code}
	}
	writeJSON(w, http.StatusBadRequest, map[string]any{"type": "error", "error": body})
}

// checkMessages checks the history of a request.
func (v *verifier) checkMessages(body []byte, betas []string) (*conversation, *refusal) {
	c := &conversation{v: v, betas: betas}
	if err := json.Unmarshal(body, &c.req); err != nil {
		return c, refusef("%v", err)
	}
	if r := c.checkParameters(); r != nil {
		return c, r
	}
	var system blocks
	if len(c.req.System) > 0 {
		_ = system.UnmarshalJSON(c.req.System) // of another form it is empty
	}
	var parts []string
	for _, block := range system {
		parts = append(parts, c.v.canonical(block))
	}
	parts = append(parts, "tools")
	for _, tool := range c.req.Tools {
		if !tool.Defer {
			parts = append(parts, c.v.canonical(tool.RawMessage))
		}
	}
	c.config = digest(parts...)
	c.prefix = prefix{c.config}
	c.setTools()
	for i, m := range c.req.Messages {
		if r := cmp.Or(c.checkSystem(i), c.checkMessage(i, m)); r != nil {
			return c, r
		}
	}
	return c, nil
}

// checkParameters checks what a request may ask for.
func (c *conversation) checkParameters() *refusal {
	thinking := c.req.Thinking
	if thinking.BlockBinding != nil && (!c.has(betaBinding) || thinking.Type == "disabled") {
		return refusef("thinking.%s.block_binding: Extra inputs are not permitted", thinking.Type)
	}
	if c.req.Compaction == nil {
		return nil
	}
	switch {
	case !c.has(betaCompact):
		return refusef("compaction: requires anthropic-beta: %s", betaCompact)
	case len(c.req.ContextManagement) > 0:
		return refusef("compaction: cannot be combined with context_management")
	case len(c.req.StopSequences) > 0:
		return refusef("compaction: cannot be combined with stop_sequences")
	case c.req.ToolChoice.Type == "any" || c.req.ToolChoice.Type == "tool":
		return refusef("compaction: cannot be combined with a tool_choice of type %s", c.req.ToolChoice.Type)
	case len(c.req.Messages) == 0:
		return &refusal{"compaction: there is nothing to summarize", "compaction_nothing_to_summarize"}
	case c.endsWithCall():
		return refusef("compaction: the last assistant turn ends in a tool call with no result")
	default:
		return nil
	}
}

// endsWithCall reports whether the last message has a tool call.
func (c *conversation) endsWithCall() bool {
	last := c.req.Messages[len(c.req.Messages)-1]
	return slices.ContainsFunc(last.Content, func(raw json.RawMessage) bool { return decoded(raw).Type == "tool_use" })
}

func (c *conversation) has(beta string) bool { return slices.Contains(c.betas, beta) }

// boundBlock is a block that may be a thought or a compaction.
type boundBlock struct {
	Type      string  `json:"type"`
	Thinking  string  `json:"thinking"`
	Data      string  `json:"data"`
	Content   *string `json:"content"`
	Signature string  `json:"signature"`
}

func decoded(raw json.RawMessage) boundBlock {
	var b boundBlock
	_ = json.Unmarshal(raw, &b) // contents of other forms are not of these blocks
	return b
}

// checkMessage checks a message and adds it to the prefix.
func (c *conversation) checkMessage(i int, m messageRequest) *refusal {
	content := m.Content
	if i == 0 && len(content) > 0 && decoded(content[0]).Type == "compaction" {
		if r := c.checkCompaction(content[0]); r != nil {
			return r
		}
		if len(content) == 1 {
			return nil
		}
	}
	c.prefix = c.prefix.add("role " + m.Role)
	c.role = m.Role
	for j, raw := range content {
		path := fmt.Sprintf("messages.%d.content.%d", i, j)
		switch b := decoded(raw); {
		case b.Type == "compaction" && i+j > 0:
			return c.refuseMisplaced(path)
		case b.Type == "compaction":
		case isToolChange(b.Type) && m.Role != "system":
			return refusef("%s: a block of type %s is for a message with role 'system'", path, b.Type)
		case b.Type == "thinking" || b.Type == "redacted_thinking":
			if r := c.checkThought(path, b); r != nil {
				return r
			}
		default:
			c.prefix = c.prefix.add(c.v.canonical(raw))
		}
	}
	return nil
}

// checkThought checks a thought: it belongs to the prompt, or is dropped, or the request is refused.
func (c *conversation) checkThought(path string, b boundBlock) *refusal {
	s, ok := c.v.open(cmp.Or(b.Signature, b.Data))
	if !ok || s.Text != digest(b.Thinking) {
		return refusef("%s: Invalid `signature` in `%s` block", path, b.Type)
	}
	switch reason := c.mismatch(s); reason {
	case "":
		c.verified++
	case "prefix_binding_mismatch":
		if c.onMismatch() == Refuse {
			return c.refuseThought(path, b.Type)
		}
		c.transformations = append(c.transformations, Transformation{"thinking_dropped", path, reason})
		return nil // to the thoughts after it, it is left out
	default:
		c.transformations = append(c.transformations, Transformation{"thinking_dropped", path, reason})
	}
	c.before = s.ID
	return nil
}

// mismatch returns which check the thought fails, "" = none, in the documented order of precedence.
func (c *conversation) mismatch(s seal) string {
	switch {
	case s.Account != c.v.Account:
		return "organization_binding_mismatch"
	case c.req.Model != s.Model:
		return "model_binding_mismatch"
	case !c.prefix.holds(s.Prefix) || c.before != "" && s.Before != c.before:
		return "prefix_binding_mismatch"
	default:
		return ""
	}
}

// onMismatch returns what is done about a changed prefix.
func (c *conversation) onMismatch() Mismatch {
	binding := c.req.Thinking.BlockBinding
	switch {
	case binding == nil || binding.Behavior == "":
		return c.v.OnMismatch
	case binding.Behavior == "drop_block":
		return Drop
	default:
		return Refuse
	}
}

// refuseThought refuses a thought whose prefix has changed, in the words of the API.
func (c *conversation) refuseThought(path, kind string) *refusal {
	message := fmt.Sprintf("%s: Invalid `signature` in `%s` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\".", path, kind)
	if !c.has(betaBinding) {
		message += " That setting requires the `" + betaBinding + "` value in the `anthropic-beta` header."
	}
	return &refusal{message: message}
}

// thinks reports whether the answer has thoughts.
func (c *conversation) thinks() bool {
	switch c.req.Thinking.Type {
	case "":
		return c.v.AlwaysThinks
	default:
		return c.req.Thinking.Type != "disabled"
	}
}

// thoughts counts what became of the thoughts.
func (c *conversation) thoughts() Thoughts {
	t := Thoughts{Verified: c.verified}
	for _, x := range c.transformations {
		if x.Type == "thinking_dropped" {
			t.Dropped++
		}
	}
	return t
}

// newThought returns the seal of a thought with which the answer begins, after one with that ID.
func (c *conversation) newThought(id, before, text string) seal {
	return seal{
		Account: c.v.Account, Model: c.req.Model, ID: id, Before: before, Text: digest(text),
		Prefix: c.prefix.last().add("role assistant"),
	}
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // the caller may have gone away
}
