package transfer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// What a message may hold besides what Limits bound.
const (
	maxCalls = 128 // tool calls
	maxParts = 128
)

// clockSkew is how far another machine's clock may be ahead.
const clockSkew = time.Minute

// content returns how many bytes the text of a message may have.
func (l Limits) content(role core.Role) int {
	if role == "" || role == core.RoleUser {
		return l.Message
	}
	return max(l.Message, l.Output)
}

// check returns the message as it can be stored, and what is wrong with it. Broken
// characters of its texts become U+FFFD, which metadata.replaced_characters counts.
func (l Limits) check(m core.Message) (core.Message, core.Faults) {
	c := checker{limits: l, m: m}
	c.role()
	c.content()
	c.calls()
	c.parts()
	c.names()
	c.state()
	c.metadata()
	return c.m, c.faults
}

// checker is one check.
type checker struct {
	limits   Limits
	m        core.Message
	replaced int
	faults   core.Faults
}

// text returns what is stored of a text, and complains if it is too long.
func (c *checker) text(field, value string, most int) string {
	clean := core.CleanText(value)
	c.replaced += strings.Count(clean, "\uFFFD") - strings.Count(value, "\uFFFD")
	if len(clean) > most {
		c.faults.Add(field, "has %d bytes, at most %d are allowed", len(clean), most)
	}
	return clean
}

func (c *checker) role() {
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

func (c *checker) content() {
	c.m.Content = c.text("content", c.m.Content, c.limits.content(c.m.Role))
	empty := strings.TrimSpace(c.m.Content) == ""
	spoken := c.m.Role == core.RoleUser || c.m.Role == core.RoleAssistant && len(c.m.ToolCalls) == 0 && len(c.m.Parts) == 0
	if empty && spoken {
		c.faults.Add("content", "is empty")
	}
}

// calls checks the tool calls. Their arguments are kept byte for byte.
func (c *checker) calls() {
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
		c.name(field+".id", call.ID)
		c.name(field+".name", call.Name)
		total += len(call.Arguments) + len(call.Signature)
		calls[i].Arguments = c.text(field+".arguments", call.Arguments, c.limits.Output)
		if core.CleanText(call.Signature) != call.Signature {
			c.faults.Add(field+".signature", "must be valid UTF-8 without U+0000")
		}
	}
	if total > c.limits.Output {
		c.faults.Add("tool_calls", "have %d bytes of arguments, at most %d are allowed", total, c.limits.Output)
	}
	c.m.ToolCalls = calls
}

func (c *checker) parts() {
	if len(c.m.Parts) > maxParts {
		c.faults.Add("parts", "are %d, at most %d are allowed", len(c.m.Parts), maxParts)
		return
	}
	c.m.Parts = slices.Clone(c.m.Parts)
	for i, p := range c.m.Parts {
		if p.Type != "text" && p.Type != "reasoning" {
			c.faults.Add("parts", "type %q must be text or reasoning", core.Clip(p.Type, 40))
		}
		c.m.Parts[i].Text = c.text("parts", p.Text, c.limits.Output)
		c.m.Parts[i].Signature = c.text("parts", p.Signature, c.limits.Output)
	}
}

// name complains about what must be stored as it is and cannot.
func (c *checker) name(field, value string) {
	if len(value) > c.limits.Name {
		c.faults.Add(field, "has %d bytes, at most %d are allowed", len(value), c.limits.Name)
	}
	if core.CleanText(value) != value {
		c.faults.Add(field, "must be valid UTF-8 without U+0000")
	}
}

func (c *checker) names() {
	c.name("tool_call_id", c.m.ToolCallID)
	c.name("tool_name", c.m.ToolName)
	c.name("model", c.m.Model)
	c.name("finish_reason", string(c.m.FinishReason))
	c.name("client_message_id", c.m.ClientMessageID)
	c.m.Author = c.text("author", c.m.Author, c.limits.Name)
}

func (c *checker) state() {
	switch c.m.Status {
	case "", core.MessageComplete, core.MessagePartial, core.MessageFailed:
	default:
		c.faults.Add("status", "%q must be complete, partial or failed", core.Clip(string(c.m.Status), 40))
	}
	switch c.m.Source {
	case core.SourceAPI, core.SourceWeb, core.SourceCLI, core.SourceSlack:
	default:
		c.faults.Add("source", "%q must be api, web, cli or slack", core.Clip(string(c.m.Source), 40))
	}
	if c.m.Pinned && c.m.Role == core.RoleSystem {
		c.faults.Add("pinned", "is not of system messages, which no prompt holds")
	}
	if c.m.CreatedAt.IsZero() {
		return
	}
	c.m.CreatedAt = c.m.CreatedAt.UTC().Truncate(time.Microsecond)
	switch {
	case c.m.CreatedAt.After(core.Now().Add(clockSkew)):
		c.faults.Add("created_at", "%s is in the future", c.m.CreatedAt.Format(time.RFC3339))
	case c.m.CreatedAt.Year() < 1970:
		c.faults.Add("created_at", "%s is before 1970", c.m.CreatedAt.Format(time.RFC3339))
	}
}

// metadata checks the metadata and notes in them how many characters were replaced.
func (c *checker) metadata() {
	raw := c.m.Metadata
	if len(raw) > c.limits.Metadata {
		c.faults.Add("metadata", "has %d bytes, at most %d are allowed", len(raw), c.limits.Metadata)
		return
	}
	object := map[string]any{}
	if len(raw) > 0 {
		decoder := json.NewDecoder(bytes.NewReader(raw))
		decoder.UseNumber()
		if decoder.Decode(&object) != nil || object == nil {
			c.faults.Add("metadata", "must be a JSON object")
			return
		}
	}
	// No database takes every escape that JSON has: what has none stays as it is.
	if c.replaced == 0 && !bytes.Contains(raw, []byte(`\u`)) {
		return
	}
	if c.replaced > 0 {
		object["replaced_characters"] = c.replaced
	}
	c.m.Metadata = encode(clean(object))
}

// clean returns a JSON value with texts that can be stored.
func clean(v any) any {
	switch v := v.(type) {
	case string:
		return core.CleanText(v)
	case []any:
		for i := range v {
			v[i] = clean(v[i])
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, value := range v {
			out[core.CleanText(name)] = clean(value)
		}
		return out
	}
	return v
}

// encode returns a value as JSON. It panics on what JSON cannot say.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("transfer: " + err.Error())
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
