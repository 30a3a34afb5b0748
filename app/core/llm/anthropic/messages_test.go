package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// A PDF is a document block with its name, before the text; one alone has no text.
func TestDocuments(t *testing.T) {
	t.Parallel()
	pdf := llm.Media{Part: core.Part{Type: core.PartFile, MediaType: "application/pdf", Name: "plan.pdf"}, Data: []byte("%PDF-1.7 scan")}
	p := sent(t, anthropic.Options{Model: "claude-sonnet-4-5", APIKey: "k"}, llm.Request{Messages: []llm.Message{
		{Role: core.RoleUser, Content: "look", Media: []llm.Media{pdf, {Part: core.Part{Type: core.PartImage, MediaType: "image/png"}, Data: []byte("one")}}},
		{Role: core.RoleAssistant, Content: "I see"},
		{Role: core.RoleUser, Media: []llm.Media{pdf}},
	}})
	const document = `{"source":{"data":"JVBERi0xLjcgc2Nhbg==","media_type":"application/pdf","type":"base64"},"title":"plan.pdf",`
	for _, want := range []string{
		`[` + document + `"type":"document"},{"source":{"data":"b25l","media_type":"image/png","type":"base64"},"type":"image"},{"text":"look","type":"text"}]`,
		`[` + document + `"cache_control":{"type":"ephemeral"},"type":"document"}]`,
	} {
		compare.Contains(t, "p.raw(): want in it", want, p.raw())
	}
}

// A system message among the others goes to models that bind thoughts, and to no others.
func TestSystemMessages(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]bool{"claude-opus-5-5": true, "claude-opus-4-6": false, "claude-latest": false} {
		req := ask("hi")
		req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: "Be brief."})
		got := sent(t, anthropic.Options{Model: model}, req).raw()
		if strings.Contains(got, `"text":"Be brief."`) != want || strings.Contains(got, `"role":"system"`) != want {
			t.Errorf("%s: got %s, want the message sent: %v", model, got, want)
		}
	}
}

// The parameters of an agent are members of the request, under Anthropic's names; those
// that the model does not take are left out.
func TestParametersAreSent(t *testing.T) {
	t.Parallel()
	p := core.ModelParameters{
		Temperature: new(0.0), TopP: new(0.5), Stop: []string{"END"}, Seed: new(1), ReasoningEffort: "low",
		ResponseFormat: &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)},
	}
	topP := p
	topP.Temperature = nil
	const format = `"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"z":{},"a":{}}}}}`
	for name, tt := range map[string]struct {
		options    anthropic.Options
		parameters core.ModelParameters
		lacks      []llm.Parameter
		has, not   []string
	}{
		"all":                   {anthropic.Options{}, p, []llm.Parameter{llm.TopPBeside, llm.Seed, llm.ReasoningEffort}, []string{`"temperature":0`, `"stop_sequences":["END"]`, format}, []string{"top_p", "seed", "effort"}},
		"top_p":                 {anthropic.Options{}, topP, []llm.Parameter{llm.Seed, llm.ReasoningEffort}, []string{`"top_p":0.5`}, []string{"temperature"}},
		"Claude 4.7":            {anthropic.Options{Model: "claude-opus-4-7"}, p, []llm.Parameter{llm.Temperature, llm.TopP, llm.Seed, llm.ReasoningEffort}, []string{format}, []string{"top_p", "temperature"}},
		"Claude 4":              {anthropic.Options{Model: "claude-sonnet-4-20250514"}, p, []llm.Parameter{llm.TopPBeside, llm.Seed, llm.ReasoningEffort, llm.JSONSchema}, []string{`"temperature":0`}, []string{"output_config"}},
		"a budget for thinking": {anthropic.Options{Thinking: 2048}, p, []llm.Parameter{llm.Temperature, llm.TopP, llm.Seed, llm.ReasoningEffort}, []string{`"thinking":{`}, []string{"top_p", "temperature"}},
		"a high temperature":    {anthropic.Options{}, core.ModelParameters{Temperature: new(1.5)}, []llm.Parameter{llm.HighTemperature}, nil, []string{"temperature"}},
		"only white space":      {anthropic.Options{}, core.ModelParameters{Stop: []string{"\n"}}, []llm.Parameter{llm.BlankStop}, nil, []string{"stop_sequences"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := open(t, tt.options)
			compare.Equal(t, "the model lacks", tt.lacks, model.Info().Lacking(tt.parameters))
			req := llm.Request{Messages: []llm.Message{{Role: core.RoleUser, Content: "hi"}}, MaxOutputTokens: 4096}
			got := sent(t, tt.options, req.WithParameters(tt.parameters, model.Info())).raw()
			for _, part := range tt.has {
				compare.Contains(t, "request", part, got)
			}
			for _, part := range tt.not {
				if strings.Contains(got, part) {
					t.Errorf("got the request %s, want no %s in it", got, part)
				}
			}
		})
	}
}

// FuzzStream: see llmtest.
func FuzzStream(f *testing.F) {
	for _, events := range [][]string{
		{`{"type":"message_start","message":{"usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`},
		{`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x":[1]}}}`,
			`{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"a","name":"f"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{"}}`, `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`, `{"type":"message_stop"}`},
		{`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"h","signature":"s"}}`, `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"t"}}`,
			`{"type":"content_block_stop","index":0}`, `{"type":"error","error":{"type":"overloaded_error","message":"m"}}`},
	} {
		f.Add([]byte("data: " + strings.Join(events, "\n\ndata: ") + "\n\n"))
		f.Add([]byte(events[0]))
	}
	f.Add([]byte(fine))
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","name":"f","input":null},3],"stop_reason":"x","usage":7}`))
	f.Add([]byte("event: error\r\ndata: {\r\ndata: }\r\n\r\n: x\n"))
	llmtest.FuzzStream(f, func(transport http.RoundTripper) (llm.Model, error) {
		return anthropic.New(anthropic.Options{Model: "m", Transport: transport})
	})
}

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
			compare.Equal(t, "the betas", c.beta, strings.Join(p.Last().Header.Values("Anthropic-Beta"), " "))
			if strings.Count(p.raw(), "cache_control") != strings.Count(plain.raw(), "cache_control") {
				t.Errorf("got %s, want as many breakpoints as in %s", p.raw(), plain.raw())
			}
			body, before := p.body(), plain.body()
			delete(body, "messages")
			delete(before, "messages")
			compare.Equal(t, "fmt.Sprint(body): want beside the messages", fmt.Sprint(before), fmt.Sprint(body))
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
		compare.Equal(t, model, want, open(t, anthropic.Options{Model: model}).Info().ToolChanges)
		compare.Equal(t, model+": changes of tools", llm.ToolsFixed, must.Get(anthropic.NewOnCloud(anthropic.Options{Model: model}, anthropic.Cloud{Provider: "bedrock"}))(t).Info().ToolChanges)
	}
}
