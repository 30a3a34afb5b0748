package responses_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
)

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
			if got := toJSON(t, sent(t, responses.Options{Model: c.model}, req).JSON()["input"]); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			m, err := responses.New(responses.Options{Model: c.model})
			if err != nil || (m.Info().ToolChanges == llm.ToolsAdded) != (c.model == "gpt-6.2") {
				t.Errorf("got the info %+v, %v", m.Info(), err)
			}
		})
	}
}

// A refusal that names the item is one of the added tools; it is not met by a second request.
func TestAddedToolsRefused(t *testing.T) {
	t.Parallel()
	for sentence, want := range map[string]llm.ErrorKind{
		"Invalid value: 'additional_tools'. Supported values are: 'message' and 'reasoning'.": llm.KindToolChangesRefused,
		"Invalid value: 'reasoning'.": llm.KindInvalid,
	} {
		s := serve(t, refuse(400, `{"error":{"message":"`+sentence+`","type":"invalid_request_error","param":"input[1].type","code":"invalid_value"}}`))
		req := ask("hi")
		req.Messages = append(req.Messages, llm.Message{Role: core.RoleSystem, AddedTools: []llm.ToolSpec{{Name: "scales"}}})
		if _, err := collect(t, open(t, s, responses.Options{Model: "gpt-6.2"}), req); !llm.IsKind(err, want) || len(s.Received()) != 1 {
			t.Errorf("got %v after %d requests, want %s after one", err, len(s.Received()), want)
		}
	}
}
