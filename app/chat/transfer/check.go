package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// What a message may hold besides what Limits bound.
const (
	maxCalls = 128 // tool calls
	maxParts = 128

	maxMetadata = 16 << 10
	maxName     = 200 // names and ids that callers choose
)

// clockSkew is how far another machine's clock may be ahead.
const clockSkew = time.Minute

// maxContent returns how many bytes the text of a message may have.
func (l Limits) maxContent(role core.Role) int {
	if role == "" || role == core.RoleUser {
		return l.Message
	}
	return max(l.Message, l.Output)
}

// checkMessage returns the message as it can be stored, and what is wrong with it. Broken
// characters of its texts become U+FFFD, which metadata.replaced_characters counts.
func (l Limits) checkMessage(m core.Message) (core.Message, core.Faults) {
	c := checker{limits: l, m: m}
	c.checkRole()
	c.m.Content = c.cleanText("content", c.m.Content, c.limits.maxContent(c.m.Role))
	c.m = separateThoughts(c.m)
	if saysNothing(c.m) || c.m.Role == core.RoleUser && strings.TrimSpace(c.m.Content) == "" {
		c.faults.Add("content", "is empty")
	}
	c.checkCalls()
	c.checkParts()
	c.faults.ID("tool_call_id", c.m.ToolCallID, maxName)
	c.faults.ID("tool_name", c.m.ToolName, maxName)
	c.faults.ID("model", c.m.Model, maxName)
	c.faults.ID("finish_reason", string(c.m.FinishReason), maxName)
	c.faults.ID("client_message_id", c.m.ClientMessageID, maxName)
	c.faults.ID("author_id", c.m.AuthorID, maxName)
	c.m.Author = c.cleanText("author", c.m.Author, maxName)
	switch c.m.Status {
	case "", core.MessageComplete, core.MessagePartial, core.MessageFailed:
	default:
		c.faults.Add("status", "%q must be complete, partial or failed", core.Clip(string(c.m.Status), 40))
	}
	switch c.m.Source {
	case core.SourceAPI, core.SourceWeb, core.SourceCLI, core.SourceSlack, core.SourceClient:
	default:
		c.faults.Add("source", "%q must be api, web, cli, slack or client", core.Clip(string(c.m.Source), 40))
	}
	if c.m.Pinned && c.m.Role == core.RoleSystem {
		c.faults.Add("pinned", "is not of system messages, which no prompt holds")
	}
	if !c.m.CreatedAt.IsZero() {
		c.m.CreatedAt = c.checkTime("created_at", c.m.CreatedAt)
	}
	c.checkMetadata()
	// Feedback without a rating is none.
	if c.m.Feedback != nil {
		c.m.Feedback = c.faults.Feedback("feedback.", *c.m.Feedback)
	}
	if c.m.Feedback != nil && c.m.Feedback.Rating == "" {
		c.m.Feedback = nil
	}
	c.checkRevisions()
	return c.m, c.faults
}

// separateThoughts moves the thoughts in an assistant's text, whatever model wrote it, to its parts.
func separateThoughts(m core.Message) core.Message {
	if m.Role != core.RoleAssistant {
		return m
	}
	text, thoughts := llm.CutThoughts(m.Content)
	if m.Content = text; strings.TrimSpace(thoughts) != "" {
		m.Parts = append(slices.Clone(m.Parts), core.Part{Type: core.PartReasoning, Text: thoughts})
	}
	return m
}

// checker is one check.
type checker struct {
	limits   Limits
	m        core.Message
	replaced int
	faults   core.Faults
}

// cleanText returns what is stored of a text, and complains if it is too long.
func (c *checker) cleanText(field, value string, most int) string {
	clean := c.faults.Text(field, value, most)
	c.replaced += strings.Count(clean, "\uFFFD") - strings.Count(value, "\uFFFD")
	return clean
}

func (c *checker) checkRole() {
	m := c.m
	switch m.Role {
	case core.RoleUser, core.RoleAssistant, core.RoleTool, core.RoleSystem:
	default:
		c.faults.Add("role", "%q must be user, assistant, tool or system", core.Clip(string(m.Role), 40))
	}
	switch {
	case m.Role == core.RoleTool && m.ToolCallID == "":
		c.faults.Add("tool_call_id", "is missing: a tool's message must say which call it answers")
	case m.Role != core.RoleTool && m.ToolCallID != "":
		c.faults.Add("tool_call_id", "is of tool messages only")
	case m.Role != core.RoleAssistant && len(m.ToolCalls) > 0:
		c.faults.Add("tool_calls", "are of assistant messages only")
	}
}

// saysNothing reports whether a message of the user or the assistant has no content, such as
// an answer that was stopped before its first word: no prompt can hold it.
func saysNothing(m core.Message) bool {
	return (m.Role == core.RoleUser || m.Role == core.RoleAssistant) && strings.TrimSpace(m.Content) == "" && len(m.ToolCalls) == 0 && len(m.Parts) == 0
}

// checkCalls checks the tool calls. Their arguments are kept byte for byte.
func (c *checker) checkCalls() {
	if len(c.m.ToolCalls) > maxCalls {
		c.faults.Add("tool_calls", "are %d, at most %d are allowed", len(c.m.ToolCalls), maxCalls)
		return
	}
	total := 0
	calls := slices.Clone(c.m.ToolCalls)
	for i, call := range calls {
		field := fmt.Sprintf("tool_calls[%d]", i)
		if call.ID == "" {
			c.faults.Add(field+".id", "is missing")
		}
		if call.Name == "" {
			c.faults.Add(field+".name", "is missing")
		}
		c.faults.ID(field+".id", call.ID, maxName)
		c.faults.ID(field+".name", call.Name, maxName)
		total += len(call.Arguments) + len(call.Signature)
		calls[i].Arguments = c.cleanText(field+".arguments", call.Arguments, c.limits.Output)
		c.faults.ID(field+".signature", call.Signature, c.limits.Output)
	}
	if total > c.limits.Output {
		c.faults.Add("tool_calls", "have %d bytes of arguments, at most %d are allowed", total, c.limits.Output)
	}
	c.m.ToolCalls = calls
}

func (c *checker) checkParts() {
	if len(c.m.Parts) > maxParts {
		c.faults.Add("parts", "are %d, at most %d are allowed", len(c.m.Parts), maxParts)
		return
	}
	c.m.Parts = slices.Clone(c.m.Parts)
	for i, p := range c.m.Parts {
		if p.Type != "text" && p.Type != "reasoning" {
			c.faults.Add("parts", "type %q must be text or reasoning", core.Clip(p.Type, 40))
		}
		c.m.Parts[i].Text = c.cleanText("parts", p.Text, c.limits.Output)
		c.m.Parts[i].Signature = c.cleanText("parts", p.Signature, c.limits.Output)
	}
}

// checkTime returns a time as it is stored, and complains about one that cannot be.
func (c *checker) checkTime(field string, t time.Time) time.Time {
	t = t.UTC().Truncate(time.Microsecond)
	switch {
	case t.After(core.Now().Add(clockSkew)):
		c.faults.Add(field, "%s is in the future", t.Format(time.RFC3339))
	case t.Year() < 1970:
		c.faults.Add(field, "%s is before 1970", t.Format(time.RFC3339))
	}
	return t
}

// checkRevisions checks what the message said before; messages keep the newest revisions.
func (c *checker) checkRevisions() {
	m := &c.m
	if m.RevisedAt == nil || m.Role != core.RoleUser {
		m.RevisedAt, m.Revisions = nil, nil
		return
	}
	m.RevisedAt = new(c.checkTime("revised_at", *m.RevisedAt))
	m.Revisions = slices.Clone(core.KeptRevisions(m.Revisions))
	for i, r := range m.Revisions {
		r.Content, r.ReplacedAt = c.cleanText("revisions", r.Content, c.limits.Message), c.checkTime("revisions", r.ReplacedAt)
		r.TokenCount = max(r.TokenCount, 0)
		m.Revisions[i] = r
	}
}

// checkMetadata checks the metadata and notes in them how many characters were replaced, and what
// prompts show of a content that is too large for them or has data.
func (c *checker) checkMetadata() {
	raw := c.m.Metadata
	before := len(c.faults)
	c.faults.Metadata(raw, maxMetadata)
	shown := 0 // of a message that is not a tool's result, all
	if c.m.Role == core.RoleTool {
		shown = c.limits.Shown
	}
	excerpt, isPart := core.ExcerptOf(c.m, shown)
	// No database takes every escape that JSON has: what has none stays as it is.
	if len(c.faults) > before || c.replaced == 0 && !isPart && !bytes.Contains(raw, []byte(`\u`)) {
		return
	}
	object := map[string]any{}
	if len(raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if err := decoder.Decode(&object); err != nil {
			c.faults.Add("metadata", "must be a JSON object")
			return
		}
	}
	if c.replaced > 0 {
		object[core.ReplacedKey] = c.replaced
	}
	if isPart {
		object[core.ExcerptKey] = excerpt
	}
	c.m.Metadata, _ = core.EncodeJSON(cleanJSON(object)) // it came as JSON
}

// cleanJSON returns a JSON value with texts that can be stored.
func cleanJSON(v any) any {
	switch v := v.(type) {
	case string:
		return core.CleanText(v)
	case []any:
		for i := range v {
			v[i] = cleanJSON(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[core.CleanText(name)] = cleanJSON(value)
		}
		return out
	}
	return v
}
