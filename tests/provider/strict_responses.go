package provider

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
)

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
	if !req.Stream {
		writeJSON(w, http.StatusOK, response)
		return
	}
	streamResponse(w, response)
}

func responsesUsage(tokens int) map[string]any {
	return map[string]any{
		"input_tokens": tokens, "input_tokens_details": map[string]any{"cached_tokens": 0, "cache_write_tokens": 0},
		"output_tokens": 1, "output_tokens_details": map[string]any{"reasoning_tokens": 0}, "total_tokens": tokens + 1,
	}
}
