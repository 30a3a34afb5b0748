package llm_test

import (
	"fmt"
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// requestOf returns a request with so many messages.
func requestOf(n int) llm.Request {
	req := llm.Request{System: []string{"Be brief.", "A summary."}, Tools: []llm.ToolSpec{{Name: "clock"}}}
	for i := range n {
		role := core.RoleUser
		if i%2 == 1 {
			role = core.RoleAssistant
		}
		req.Messages = append(req.Messages, llm.Message{Role: role, Content: fmt.Sprintf("message %d", i+1)})
	}
	return req
}

// The first part that differs is found from the stored marks, and the message itself in prompts of
// up to 96.
func TestDifferenceOfPrompts(t *testing.T) {
	t.Parallel()
	info := llm.Info{Name: "house", Account: "a"}
	edit := func(n int) func(*llm.Request) {
		return func(r *llm.Request) { r.Messages[n-1].Content = "edited" }
	}
	for name, tt := range map[string]struct {
		before, after int // messages
		change        func(r *llm.Request)
		info          llm.Info // of the later prompt; empty = the same
		part          core.PromptPart
		index, within int
	}{
		"grows":                    {5, 7, nil, llm.Info{}, core.PromptSame, 0, 0},
		"the same":                 {5, 5, nil, llm.Info{}, core.PromptSame, 0, 0},
		"goes back":                {7, 5, nil, llm.Info{}, core.PromptSame, 0, 0},
		"the first":                {0, 1, nil, llm.Info{}, core.PromptSame, 0, 0},
		"other model":              {5, 7, edit(1), llm.Info{Name: "other", Account: "a"}, core.PromptModel, 0, 0},
		"other account":            {5, 7, edit(1), llm.Info{Name: "house", Account: "b"}, core.PromptModel, 0, 0},
		"system":                   {5, 7, func(r *llm.Request) { r.System[0] = "Be long."; r.Tools = nil }, llm.Info{}, core.PromptSystem, 0, 0},
		"summary":                  {5, 7, func(r *llm.Request) { r.System[1] = "Another." }, llm.Info{}, core.PromptSystem, 0, 0},
		"no summary":               {5, 7, func(r *llm.Request) { r.System = r.System[:1] }, llm.Info{}, core.PromptSystem, 0, 0},
		"tools":                    {5, 7, func(r *llm.Request) { r.Tools = nil }, llm.Info{}, core.PromptTools, 0, 0},
		"effort":                   {5, 7, func(r *llm.Request) { r.ReasoningEffort = "high" }, llm.Info{}, core.PromptTools, 0, 0},
		"first message":            {5, 7, edit(1), llm.Info{}, core.PromptOfMessage, 1, 1},
		"fourth message":           {5, 7, edit(4), llm.Info{}, core.PromptOfMessage, 4, 1},
		"last message":             {5, 7, edit(5), llm.Info{}, core.PromptOfMessage, 5, 1},
		"new message":              {5, 7, edit(6), llm.Info{}, core.PromptSame, 0, 0},
		"shorter, and edited":      {7, 5, edit(3), llm.Info{}, core.PromptOfMessage, 3, 1},
		"a file":                   {5, 7, func(r *llm.Request) { r.Messages[2].Media = []llm.Media{{Part: core.Part{BlobID: "b"}}} }, llm.Info{}, core.PromptOfMessage, 3, 1},
		"96 messages":              {96, 98, edit(95), llm.Info{}, core.PromptOfMessage, 95, 1},
		"97 messages: in pairs":    {97, 99, edit(95), llm.Info{}, core.PromptOfMessage, 95, 2},
		"its last one":             {97, 99, edit(97), llm.Info{}, core.PromptOfMessage, 97, 1},
		"1,000 messages: of 16":    {1_000, 1_002, edit(500), llm.Info{}, core.PromptOfMessage, 497, 16},
		"1,000 messages, all kept": {1_000, 1_002, nil, llm.Info{}, core.PromptSame, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := llm.MarkPrompt(info, requestOf(tt.before)).Encode()
			if len(stored) > 400 {
				t.Errorf("got %d bytes of marks, want 400 at most", len(stored))
			}
			req, later := requestOf(tt.after), info
			if tt.change != nil {
				tt.change(&req)
			}
			if tt.info.Name != "" {
				later = tt.info
			}
			part, index, within := llm.DecodeMarks(stored).Difference(llm.MarkPrompt(later, req))
			if part != tt.part || index != tt.index || within != tt.within {
				t.Errorf("got %s, message %d of %d, want %s, %d of %d", part, index, within, tt.part, tt.index, tt.within)
			}
		})
	}
}

// What cannot be decoded, as the marks of another version of Bobbin, is no prompt.
func TestMarksThatCannotBeDecoded(t *testing.T) {
	t.Parallel()
	after := llm.MarkPrompt(llm.Info{}, requestOf(3))
	for _, raw := range []string{"", "{}", "null", "{", `{"messages":3,"every":-1}`, `{"messages":1000,"every":1,"marks":"AA=="}`, `{"messages":3,"every":1}`} {
		if part, _, _ := llm.DecodeMarks([]byte(raw)).Difference(after); !slices.Contains([]core.PromptPart{core.PromptSame, core.PromptModel}, part) {
			t.Errorf("%s: got the difference %s", raw, part)
		}
	}
}
