package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
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
	Stream bool `json:"stream"`
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

// NewReasoning returns a reasoning item with which the answer to the request begins, and adds it
// to the prefix of a second one.
func (r *Responses) NewReasoning() map[string]any {
	id := "rs_" + digest(r.prefix.last()...)[:24]
	sealed := r.strict.sign(seal{Account: r.strict.Account, Model: r.model, ID: id, Prefix: r.prefix.last()})
	r.prefix = r.prefix.add(id)
	return map[string]any{"id": id, "type": "reasoning", "summary": []any{}, "encrypted_content": sealed}
}
