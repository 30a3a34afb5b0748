package provider

import (
	"encoding/json"
	"strings"
)

// fingerprint is what a provider keeps of a request to tell what differs first in a later one. It
// is about the requests alone: what was in the cache does not matter.
//
// The rules are those of the pages cache-diagnostics (Anthropic) and prompt-caching/diagnostics
// (OpenAI) and of the types of their SDKs (read 2026-11). Assumed, because they do not say: OpenAI
// keeps all responses for comparison, and counts instructions before the input as input.
type fingerprint struct {
	parts    []part // that a cache has before the messages, in the order of the reasons
	messages []part
}

// part is a part of a prompt. Its reason is what the provider says if it differs.
type part struct {
	reason, digest string
	size           int // bytes
}

// difference returns why the later request cannot have all of this one from a cache, and about how
// many tokens are lost; "" = messages were only appended.
func (f fingerprint) difference(later fingerprint) (reason string, tokens int) {
	for i, p := range f.messages {
		if i >= len(later.messages) || p.digest != later.messages[i].digest {
			reason, tokens = p.reason, partsSize(f.messages[i:])/4
			break
		}
	}
	for i, p := range f.parts {
		if p.digest != later.parts[i].digest {
			return p.reason, (partsSize(f.parts) + partsSize(f.messages)) / 4
		}
	}
	return reason, tokens
}

func partsSize(parts []part) (n int) {
	for _, p := range parts {
		n += p.size
	}
	return n
}

// newPart returns a part of the texts.
func newPart(reason string, texts ...string) part {
	return part{reason, digest(texts...), len(strings.Join(texts, ""))}
}

// keepFingerprint keeps the fingerprint of the request that the answer with the id answers.
func (v *verifier) keepFingerprint(id string, f fingerprint) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.fingerprints == nil {
		v.fingerprints = map[string]fingerprint{}
	}
	v.fingerprints[id] = f
}

// fingerprintOf returns what was kept under the id.
func (v *verifier) fingerprintOf(id string) (fingerprint, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	f, ok := v.fingerprints[id]
	return f, ok
}

// diagnosticsParam is what a request of Anthropic's says for its diagnostics.
type diagnosticsParam struct {
	Previous *string `json:"previous_message_id"`
}

// diagnostics returns that member of the answer with the id. Only requests that have it, too, are kept.
func (c *conversation) diagnostics(id string) any {
	asked := c.req.Diagnostics
	if asked == nil {
		return nil
	}
	later := c.fingerprint()
	defer c.v.keepFingerprint(id, later)
	if asked.Previous == nil {
		return nil
	}
	before, ok := c.v.fingerprintOf(*asked.Previous)
	if !ok {
		return map[string]any{"cache_miss_reason": map[string]any{"type": "previous_message_not_found"}}
	}
	switch reason, tokens := before.difference(later); reason {
	case "":
		return nil
	case "unavailable":
		return map[string]any{"cache_miss_reason": map[string]any{"type": reason}}
	default:
		return map[string]any{"cache_miss_reason": map[string]any{"type": reason, "cache_missed_input_tokens": tokens}}
	}
}

// fingerprint returns the request's. Of other parameters it has those that shape the prompt.
func (c *conversation) fingerprint() fingerprint {
	config := c.configParts()
	system, tools, isTool := []string{}, []string{}, false
	for _, p := range config {
		switch {
		case p == "tools":
			isTool = true
		case isTool:
			tools = append(tools, p)
		default:
			system = append(system, p)
		}
	}
	f := fingerprint{parts: []part{
		newPart("model_changed", c.req.Model), newPart("system_changed", system...), newPart("tools_changed", tools...),
		newPart("unavailable", c.req.ToolChoice.Type, c.req.Thinking.Type),
	}}
	for _, m := range c.req.Messages {
		texts := []string{m.Role}
		for _, block := range m.Content {
			texts = append(texts, c.v.canonical(block))
		}
		f.messages = append(f.messages, newPart("messages_changed", texts...))
	}
	return f
}

// addDiagnostics adds what the request asks of OpenAI's diagnostics to the response.
func (v *verifier) addDiagnostics(response map[string]any, r *Responses, body []byte) {
	var req struct {
		strictResponsesRequest

		Options struct {
			Comparison string `json:"comparison_response_id"`
		} `json:"prompt_cache_options"`
	}
	_ = json.Unmarshal(body, &req) // it was decoded before
	later := r.fingerprint(req.strictResponsesRequest)
	v.keepFingerprint(response["id"].(string), later) //nolint:forcetypeassert // create writes it
	if req.Options.Comparison == "" {
		return
	}
	response["prompt_cache_options"] = map[string]any{"mode": "implicit", "ttl": "30m", "comparison_response_id": req.Options.Comparison}
	before, ok := v.fingerprintOf(req.Options.Comparison)
	reason, tokens := before.difference(later)
	switch {
	case !ok:
		response["prompt_cache_diagnostics"] = map[string]any{"type": "comparison_response_not_found"}
	case reason == "":
		response["prompt_cache_diagnostics"] = map[string]any{"type": "cache_hit"}
	default:
		reusable := (partsSize(before.parts) + partsSize(before.messages)) / 4
		response["prompt_cache_diagnostics"] = map[string]any{
			"type": "cache_miss", "reason": reason, "cache_missed_tokens": tokens, "comparison_reusable_tokens": reusable,
		}
	}
}

// fingerprint returns the request's.
func (r *Responses) fingerprint(req strictResponsesRequest) fingerprint {
	instructions := string(req.Instructions)
	if appendsInstructions(req.Model) {
		instructions = ""
	}
	var compactions []string
	var f fingerprint
	for _, raw := range r.Items {
		var it item
		if json.Unmarshal(raw, &it) == nil && it.Type == "compaction" {
			compactions = append(compactions, it.Encrypted)
		}
		f.messages = append(f.messages, newPart("input_changed", r.strict.canonical(withoutID(raw))))
	}
	f.parts = []part{
		newPart("model_changed", req.Model), newPart("tools_changed", string(req.Tools)), newPart("text_format_changed", string(req.Text.Format)),
		newPart("reasoning_effort_changed", string(req.Reasoning.Effort)), newPart("context_compacted", compactions...), newPart("input_changed", instructions),
	}
	return f
}
