package llm_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Whatever order the messages have, user and assistant alternate, the user first, and calls keep
// their results.
func TestAlternating(t *testing.T) {
	t.Parallel()
	message := map[rune]llm.Message{
		'u': {Role: core.RoleUser, Content: "u"}, 'a': {Role: core.RoleAssistant, Content: "a"}, 's': {Role: core.RoleSystem, Content: "s"},
		'c': {Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "1", Name: "f"}}}, 't': {Role: core.RoleTool, ToolCallID: "1", Content: "t"},
		'e': {Role: core.RoleUser},
	}
	for order, want := range map[string]string{
		"uau":   "user:u assistant:a user:u",
		"uuau":  "user:u+u assistant:a user:u",
		"eu":    "user:u",
		"usu":   "user:u+u",
		"auaau": "user:[empty] assistant:a user:u assistant:a+a user:u",
		"uctau": "user:u assistant:(1) tool:t assistant:a user:u",
		"uctu":  "user:u assistant:(1) tool:t assistant:[no answer] user:u",
		"uacct": "user:u assistant:a(1) assistant:(1) tool:t",
		"ucttu": "user:u assistant:(1) tool:t tool:t assistant:[no answer] user:u",
		"":      "",
	} {
		var turns []llm.Message
		for _, letter := range order {
			turns = append(turns, message[letter])
		}
		var got []string
		for _, m := range llm.Alternating(turns) {
			text := string(m.Role) + ":" + strings.ReplaceAll(llm.PlainText(m), "\n\n", "+")
			if len(m.ToolCalls) > 0 {
				text = strings.TrimSuffix(text, llm.EmptyText) + fmt.Sprintf("(%s)", m.ToolCalls[0].ID)
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: got %q, want %q", order, got, want)
		}
	}
}
