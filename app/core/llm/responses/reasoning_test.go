package responses_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const (
	thought1 = `{"id":"rs_1","summary":[],"encrypted_content":"blob-1","type":"reasoning"}`
	said1    = `{"content":[{"annotations":[],"text":"Grüße. ","type":"output_text"}],"role":"assistant","type":"message"}`
	thought2 = `{"id":"rs_2","summary":[{"text":"one","type":"summary_text"},{"text":"two","type":"summary_text"}],"encrypted_content":"blob-2","type":"reasoning"}`
	call1    = `{"arguments":"{\"x\": 1.0}","call_id":"a","name":"f","type":"function_call"}`
	thought3 = `{"id":"rs_3","summary":[],"encrypted_content":"blob-3","type":"reasoning"}`
	call2    = `{"arguments":"{}","call_id":"b","name":"g","type":"function_call"}`
	said2    = `{"content":[{"annotations":[],"text":"Done.","type":"output_text"}],"role":"assistant","type":"message"}`
)

// Messages with a phase.
const (
	comment = `{"content":[{"annotations":[],"text":"I look. ","type":"output_text"}],"phase":"commentary","role":"assistant","type":"message"}`
	final   = `{"content":[{"annotations":[],"text":"Done.","type":"output_text"}],"phase":"final_answer","role":"assistant","type":"message"}`
)

// asMessage returns the answer as the message that it becomes.
func asMessage(res llm.Response) llm.Message {
	return llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls}
}

// Items of reasoning and the phases of messages go back as they came, in their places.
func TestReasoningGoesBackInItsPlace(t *testing.T) {
	t.Parallel()
	for name, items := range map[string][]string{
		"before a text":              {thought1, said1},
		"before a call":              {thought2, call1},
		"between texts and calls":    {thought1, said1, thought2, call1, thought3, call2},
		"between texts":              {said1, thought1, said2},
		"two beside each other":      {thought1, thought2, said1},
		"after the calls":            {call1, call2, thought3, said1},
		"with nothing but a summary": {thought2, said2},
		"a phase":                    {final},
		"two phases":                 {comment, final},
		"a phase and a call":         {comment, call1},
		"a call and a phase":         {call1, final},
		"phases and reasoning":       {thought1, comment, thought2, call1, thought3, final},
		"a phase, then none":         {comment, said2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var events []string
			for i, item := range items {
				events = append(events, done(i, item))
			}
			s := serve(t, stream(append(events, completed)...), fine)
			m := open(t, s, responses.Options{})
			res := must.Get(collect(t, m, ask("hi")))(t)
			req := ask("hi")
			req.Messages = append(req.Messages, asMessage(res))
			must.Get(collect(t, m, req))(t)
			if got := string(s.Received()[1].Body); !strings.Contains(got, `"role":"user"},`+strings.Join(items, ",")+"]") {
				t.Errorf("got %s\nwant the items %s", got, strings.Join(items, ","))
			}
		})
	}
}

// Summaries are shown as they arrive, and kept text by text.
func TestReasoningIsShown(t *testing.T) {
	t.Parallel()
	const part, delta = `{"type":"response.reasoning_summary_part.added","output_index":0,"summary_index":%d}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"delta":%q}`
	s := serve(t, stream(fmt.Sprintf(part, 0), fmt.Sprintf(delta, "on"), fmt.Sprintf(delta, "e"), fmt.Sprintf(part, 1), fmt.Sprintf(delta, "two"),
		done(0, thought2), completed))
	res := must.Get(collect(t, open(t, s, responses.Options{}), ask("hi")))(t)
	compare.Equal(t, "reasoning", "one\n\ntwo", res.Reasoning)
	want := []core.Part{
		{Type: "reasoning", Name: "rs_2", Text: "one", Origin: "openai/gpt-6"},
		{Type: "reasoning", Name: "rs_2", Text: "two", Origin: "openai/gpt-6", Signature: "blob-2"},
	}
	compare.Equal(t, "parts", want, res.Parts)
}

// Reasoning that cannot go back is only shown.
func TestReasoningThatStays(t *testing.T) {
	t.Parallel()
	for name, item := range map[string]string{
		"not encrypted": `{"id":"rs_1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`,
		"cut off":       `{"id":"rs_1","type":"reasoning","status":"incomplete","encrypted_content":"half","summary":[{"type":"summary_text","text":"hm"}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, stream(done(0, item), done(1, said1), completed), fine)
			m := open(t, s, responses.Options{})
			res, err := collect(t, m, ask("hi"))
			if err != nil || res.Reasoning != "hm" || len(res.Parts) != 1 || res.Parts[0].Text != "hm" {
				t.Errorf("got %+v, %v", res, err)
			}
			if _, err := collect(t, m, llm.Request{Messages: []llm.Message{asMessage(res)}}); err != nil || strings.Contains(string(s.Received()[1].Body), "rs_1") {
				t.Errorf("got %v, %s, want no reasoning", err, string(s.Received()[1].Body))
			}
		})
	}
}

// Tools that a system message adds are an item before its text; models that bind no reasoning get neither.
func TestAddedTools(t *testing.T) {
	t.Parallel()
	scales := llm.ToolSpec{Name: "scales", Parameters: json.RawMessage(`{"type":"object"}`)}
	const question = `{"content":[{"text":"hi","type":"input_text"}],"role":"user"}`
	const item = `{"role":"developer","tools":[{"name":"scales","parameters":{"type":"object"},"strict":false,"type":"function"}],"type":"additional_tools"}`
	for name, c := range map[string]struct {
		model, content, want string
	}{
		"alone":       {"gpt-6.2", "", `[` + question + `,` + item + `]`},
		"with a text": {"gpt-6.2", "Be brief.", `[` + question + `,` + item + `,{"content":"Be brief.","role":"developer"}]`},
		"free":        {"gpt-6", "Be brief.", `[` + question + `]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := ask("hi")
			req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, Content: c.content, AddedTools: []llm.ToolSpec{scales}})
			compare.Equal(t, "got", c.want, toJSON(t, sent(t, responses.Options{Model: c.model}, req).JSON()["input"]))
			compare.Equal(t, c.model+" adds tools", c.model == "gpt-6.2", (must.Get(responses.New(responses.Options{Model: c.model}))(t).Info().ToolChanges == llm.ToolsAdded))
		})
	}
}
