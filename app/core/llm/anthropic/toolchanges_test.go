package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// changing is a conversation whose tools change.
func changing(change llm.Message) llm.Request {
	change.Role = core.RoleSystem
	req := ask("hi")
	req.Tools = []llm.ToolSpec{{Name: "clock"}}
	req.Messages = append(req.Messages, llm.Message{Role: core.RoleAssistant, Content: "ok"}, llm.Message{Role: core.RoleUser, Content: "go on"}, change)
	return req
}

// Tools are added by definition and removed by name, in the system message, with the beta of each.
// The rest of the prompt is the same, and the breakpoint is on the last block that can have one.
func TestToolChanges(t *testing.T) {
	t.Parallel()
	scales := llm.ToolSpec{Name: "scales", Description: "Weighs.", Parameters: json.RawMessage(`{"type":"object","properties":{"b":{},"a":{}}}`)}
	const addition = `{"tool":{"type":"tool_definition","definition":{"input_schema":{"type":"object","properties":{"b":{},"a":{}}},"name":"scales","description":"Weighs."}},"type":"tool_addition"}`
	const removal = `{"tool":{"type":"tool_reference","name":"clock"},"type":"tool_removal"}`
	const marked = `"cache_control":{"type":"ephemeral"},"type":"text"}]`
	plain := sent(t, anthropic.Options{Model: "claude-opus-5-5"}, changing(llm.Message{Content: "Be brief."}))
	for name, c := range map[string]struct {
		change        llm.Message
		content, beta string
	}{
		"added":   {llm.Message{AddedTools: []llm.ToolSpec{scales}}, addition + `]`, "inline-tools-2026-09-15"},
		"removed": {llm.Message{RemovedTools: []string{"clock"}}, removal + `]`, "mid-conversation-tool-changes-2026-07-01"},
		"both and a text": {llm.Message{Content: "Be brief.", AddedTools: []llm.ToolSpec{scales}, RemovedTools: []string{"clock"}},
			removal + `,` + addition + `,{"text":"Be brief.",` + marked, "inline-tools-2026-09-15 mid-conversation-tool-changes-2026-07-01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := sent(t, anthropic.Options{Model: "claude-opus-5-5"}, changing(c.change))
			if !strings.Contains(p.raw(), `{"content":[`+c.content+`,"role":"system"}`) {
				t.Errorf("got %s, want %s in it", p.raw(), c.content)
			}
			if got := strings.Join(p.Last().Header.Values("Anthropic-Beta"), " "); got != c.beta {
				t.Errorf("got the betas %q, want %q", got, c.beta)
			}
			if strings.Count(p.raw(), "cache_control") != strings.Count(plain.raw(), "cache_control") {
				t.Errorf("got %s, want as many breakpoints as in %s", p.raw(), plain.raw())
			}
			body, before := p.body(), plain.body()
			delete(body, "messages")
			delete(before, "messages")
			if got, want := fmt.Sprint(body), fmt.Sprint(before); got != want {
				t.Errorf("got %s, want %s beside the messages", got, want)
			}
		})
	}
	if len(plain.Last().Header.Values("Anthropic-Beta")) > 0 {
		t.Errorf("got the betas %q without changes", plain.Last().Header.Values("Anthropic-Beta"))
	}
}

// Only models that bind thoughts take changes of the tools, at Anthropic itself.
func TestModelsThatChangeTools(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]llm.ToolChanges{"claude-opus-5-5": llm.ToolsChangeable, "claude-opus-4-8": llm.ToolsFixed} {
		if got := open(t, anthropic.Options{Model: model}).Info().ToolChanges; got != want {
			t.Errorf("%s: got %q, want %q", model, got, want)
		}
		m, err := anthropic.NewOnCloud(anthropic.Options{Model: model}, anthropic.Cloud{Provider: "bedrock"})
		if err != nil || m.Info().ToolChanges != llm.ToolsFixed {
			t.Errorf("%s on a cloud: got %q, %v", model, m.Info().ToolChanges, err)
		}
	}
}

// A refusal that names a beta or a block is that of the changes; it is not met by a second request.
func TestToolChangesRefused(t *testing.T) {
	t.Parallel()
	changes := changing(llm.Message{AddedTools: []llm.ToolSpec{{Name: "scales"}}})
	changes.Messages[1].Parts = []core.Part{{Type: core.PartReasoning, Signature: "s", Origin: "anthropic/claude-opus-5-5"}}
	const tags = "messages.3.content.0: Input tag 'tool_addition' found using 'type' does not match any of the expected tags: 'redacted_thinking', 'text', 'thinking'"
	for name, c := range map[string]struct {
		req      llm.Request
		sentence string
		want     llm.ErrorKind
	}{
		"a block":         {changes, tags, llm.KindToolChangesRefused},
		"a beta":          {changes, "Unexpected value(s) `inline-tools-2026-09-15` for the `anthropic-beta` header.", llm.KindToolChangesRefused},
		"something else":  {changes, "messages.3: no such field", llm.KindInvalid},
		"without changes": {changing(llm.Message{Content: "Be brief."}), tags, llm.KindInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := serve(t, 400, fmt.Sprintf(`{"type":"error","error":{"type":"invalid_request_error","message":%q}}`, c.sentence))
			if _, err := call(t, open(t, anthropic.Options{Model: "claude-opus-5-5", BaseURL: p.URL}), c.req); !llm.IsKind(err, c.want) || len(p.Received()) != 1 {
				t.Errorf("got %v after %d requests, want %s after one", err, len(p.Received()), c.want)
			}
		})
	}
}
