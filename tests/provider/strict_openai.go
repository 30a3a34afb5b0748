package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// RemovedReasoning reports a reasoning item that was withheld from the model: an entry of OpenAI's
// input_transformations.
type RemovedReasoning struct {
	ID     string `json:"id"`
	Type   string `json:"type"`   // reasoning
	Action string `json:"action"` // removed
	Reason string `json:"reason"` // organization_mismatch, model_mismatch, prefix_mismatch
}

// Responses is a request of OpenAI's Responses API whose history was checked.
//
// The rules are those of developers.openai.com/api/docs/guides/keep-prefix-unchanged (read 2026-11):
// tools, text.format, reasoning.effort, instructions before GPT-6.2, and all items before a
// reasoning item count. Reasoning that follows a change is withheld. Assumed, because the page does not say: the IDs and statuses of items and
// the empty log probabilities of texts do not count, phases of messages do, and reasoning before an
// item counts as far as the model saw it.
type Responses struct {
	Verified int
	Removed  []RemovedReasoning
	Items    []json.RawMessage // the input without what was removed

	strict Strict
	model  string
	config string
	prefix prefix

	offered []Tool // that the model may call
}

// ResponsesError is a refusal of the Responses API, with status 400.
type ResponsesError struct{ Message, Param, Code string }

func (e *ResponsesError) Error() string { return e.Message }

type strictResponsesRequest struct {
	Model        string          `json:"model"`
	Input        items           `json:"input"`
	Instructions json.RawMessage `json:"instructions"`
	Tools        json.RawMessage `json:"tools"`
	Text         struct {
		Format json.RawMessage `json:"format"`
	} `json:"text"`
	Reasoning struct {
		Effort json.RawMessage `json:"effort"`
	} `json:"reasoning"`
}

// items are the items of an input; a text is one message.
type items []json.RawMessage

func (i *items) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*i = items{json.RawMessage(`{"role":"user","content":` + quoted(text) + `}`)}
		return nil
	}
	return json.Unmarshal(raw, (*[]json.RawMessage)(i))
}

// item is an item of an input that may be reasoning.
type item struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Encrypted string `json:"encrypted_content"`
}

// CheckResponses checks the history of a request of the Responses API. The error is a
// *ResponsesError for what OpenAI refuses.
func (s Strict) CheckResponses(body []byte) (*Responses, error) {
	var req strictResponsesRequest
	if err := json.Unmarshal(body, &req); err != nil {
		return nil, &ResponsesError{Message: err.Error(), Code: "invalid_json"}
	}
	parts := []string{string(req.Tools), string(req.Text.Format), string(req.Reasoning.Effort)}
	// Since GPT-6.2 the instructions follow the input.
	version, _, _ := strings.Cut(strings.TrimPrefix(req.Model, "gpt-"), "-")
	n, err := strconv.ParseFloat(version, 64)
	if err != nil || n < 6.2 {
		parts = append(parts, string(req.Instructions))
	}
	for i, part := range parts {
		parts[i] = s.canonical(json.RawMessage(cmp.Or(part, "null")))
	}
	r := &Responses{strict: s, model: req.Model, config: digest(parts...)}
	r.prefix = prefix{r.config}
	_ = json.Unmarshal(req.Tools, &r.offered) // tools of another form have no name
	for i, raw := range req.Input {
		if err := r.addItem(i, raw); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addItem checks an item and adds it to the prefix.
func (r *Responses) addItem(i int, raw json.RawMessage) error {
	var it item
	if err := json.Unmarshal(raw, &it); err != nil {
		return &ResponsesError{Message: err.Error(), Param: fmt.Sprintf("input[%d]", i), Code: "invalid_type"}
	}
	switch it.Type {
	case "reasoning":
		kept, err := r.addReasoning(i, it)
		if err != nil || !kept {
			return err
		}
	case "additional_tools":
		if err := r.checkAdditionalTools(i, raw); err != nil {
			return err
		}
		r.prefix = r.prefix.add(r.strict.canonical(withoutID(raw)))
	default:
		r.prefix = r.prefix.add(r.strict.canonical(withoutID(raw)))
	}
	r.Items = append(r.Items, raw)
	return nil
}

// addReasoning reports whether the model gets the reasoning, and adds it to the prefix if so.
func (r *Responses) addReasoning(i int, it item) (bool, error) {
	s, ok := r.strict.open(it.Encrypted)
	if !ok {
		return false, &ResponsesError{
			Message: fmt.Sprintf("The encrypted content for item %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.", it.ID),
			Param:   fmt.Sprintf("input[%d]", i), Code: "invalid_encrypted_content",
		}
	}
	reason := ""
	switch {
	case s.Account != r.strict.Account:
		reason = "organization_mismatch"
	case s.Model != r.model:
		reason = "model_mismatch"
	case !r.prefix.holds(s.Prefix):
		reason = "prefix_mismatch"
	}
	if reason != "" {
		r.Removed = append(r.Removed, RemovedReasoning{ID: cmp.Or(it.ID, s.ID), Type: "reasoning", Action: "removed", Reason: reason})
		return false, nil
	}
	r.Verified++
	r.prefix = r.prefix.add(s.ID)
	return true, nil
}

// withoutID returns an item without what the API adds to it when it returns it.
func withoutID(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	delete(fields, "id")
	delete(fields, "status")
	if string(fields["type"]) == `"message"` { // it may be left out
		delete(fields, "type")
	}
	out, err := json.Marshal(fields)
	if err != nil {
		return raw
	}
	return bytes.ReplaceAll(out, []byte(`"logprobs":[],`), nil)
}

// ResponsesHandler serves POST /v1/responses as a strict OpenAI does: its
// answers begin with reasoning and say "answer to: " and the latest text of the input; an input with
// the word "tool" whose last item is a message is answered by a call of the tool that it names, or of the first, and one with
// the word "steps", too, by a comment before the call and reasoning before both. Safe for concurrent
// use.
type ResponsesHandler struct {
	http.ServeMux

	v *verifier
}

// NewResponsesHandler returns a handler that checks as strict says.
func NewResponsesHandler(strict Strict) *ResponsesHandler {
	h := &ResponsesHandler{v: &verifier{Strict: strict}}
	h.HandleFunc("POST /v1/responses", h.create)
	return h
}

// Thoughts returns what became of the reasoning that came back so far.
func (h *ResponsesHandler) Thoughts() Thoughts { return h.v.counts() }

// check checks the request; it writes the refusal and returns nil if there is one.
func (h *ResponsesHandler) check(w http.ResponseWriter, r *http.Request) (*Responses, []byte) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, nil // the caller went away
	}
	checked, err := h.v.CheckResponses(body)
	if err == nil {
		h.v.add(Thoughts{Verified: checked.Verified, Dropped: len(checked.Removed)})
		return checked, body
	}
	h.v.add(Thoughts{Refused: 1})
	e := &ResponsesError{Message: err.Error()}
	errors.As(err, &e)
	writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
		"message": e.Message, "type": "invalid_request_error", "param": e.Param, "code": e.Code,
	}})
	return nil, nil
}

// responsesMessage is a message of an input.
type responsesMessage struct {
	Type    string          `json:"type"`
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Output  json.RawMessage `json:"output"`
}

// text returns the message's text.
func (m responsesMessage) text() string { return textOf(m.Content) }

// create answers a request.
func (h *ResponsesHandler) create(w http.ResponseWriter, r *http.Request) {
	checked, body := h.check(w, r)
	if checked == nil {
		return
	}
	var req responsesOutput
	_ = json.Unmarshal(body, &req) // it was decoded before
	if req.Reasoning.Summary != "" && h.v.Unverified {
		writeJSON(w, http.StatusBadRequest, map[string]any{"error": map[string]any{
			"message": "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com/settings/organization/general and click on Verify Organization.",
			"type":    "invalid_request_error", "param": "reasoning.summary", "code": "unsupported_value",
		}})
		return
	}
	response := map[string]any{
		"id": "resp_" + digest(string(body))[:24], "object": "response", "created_at": 1_800_000_000, "status": "completed",
		"model": checked.model, "output": checked.output(req), "parallel_tool_calls": true, "tool_choice": "auto",
		"tools": append([]json.RawMessage{}, req.Tools...), "error": nil, "incomplete_details": nil, "instructions": nil,
		"metadata": map[string]any{}, "temperature": 1, "top_p": 1, "usage": responsesUsage(len(checked.Items)),
		"input_transformations": append([]RemovedReasoning{}, checked.Removed...),
	}
	streamResponse(w, response)
}

func responsesUsage(tokens int) map[string]any {
	return map[string]any{
		"input_tokens": tokens, "input_tokens_details": map[string]any{"cached_tokens": 0, "cache_write_tokens": 0},
		"output_tokens": 1, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": tokens + 1,
	}
}

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
