package slack

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// What can be approved is shown whole, exactly as it is. A call that is not has no button to approve
// it, shows a part of each argument, and says where to see it.
func TestApprovalShowsWholeCall(t *testing.T) {
	t.Parallel()
	notes := strings.Repeat("routine note. ", 80)
	for name, c := range map[string]struct {
		arguments string
		shown     []string
		whole     bool
	}{
		"nothing":             {`{}`, nil, true},
		"behind a long value": {`{"aaa": "` + notes + `", "command": "rm -rf /srv"}`, []string{notes, `"command": "rm -rf /srv"`}, true},
		"long numbers":        {`{"id": 9007199254740993, "list": [1e400, {"a<b": null}]}`, []string{`"id": 9007199254740993`, `[1e400,{"a<b":null}]`}, true},
		"turned writing":      {"{\"to\": \"mallory\u202eecila\u2066\"}", []string{`"to": "mallory\u202eecila\u2066"`}, true},
		"escaped letters":     {`{"c\u006fmmand": "r\u006d", "x": "a\nb"}`, []string{`"command": "rm"`, `"x": "a\nb"`}, true},
		"a name twice":        {`{"command": "ls", "command": "rm"}`, []string{`"command": "ls"`, `"command": "rm"`}, true},
		"no object":           {`rm {"a":`, []string{`rm {"a":`}, true},
		"a password":          {`{"url": "https://u:p4ssw0rd@evil.example/"}`, []string{"[redacted: password]", "bobbin runs approve r1"}, false},
		"too long":            {`{"aaa": "` + strings.Repeat(notes, 20) + `", "command": "rm -rf /srv"}`, []string{"characters left out", `"command": "rm -rf /srv"`, "bobbin runs approve r1"}, false},
		"many arguments":      {manyArguments(2000), []string{`"argument 0"`, "bobbin runs approve r1"}, false},
		"emoji":               {`{"a": "` + strings.Repeat("😀", 20_000) + `"}`, []string{"left out", "bobbin runs approve r1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := approvalContent(core.Approval{ID: "a1", RunID: "r1", Tool: "shell", Arguments: c.arguments, Status: core.ApprovalOpen})
			raw := must.Get(json.Marshal(post.blocks))(t)
			if err := fakeslack.CheckBlocks(raw); err != nil {
				t.Errorf("Slack refuses the post: %v", err)
			}
			var blocks []struct{ Text struct{ Text string } }
			must.Do(t, json.Unmarshal(raw, &blocks))
			text := ""
			for _, b := range blocks {
				text += b.Text.Text
			}
			for _, want := range c.shown {
				if !strings.Contains(text, want) {
					t.Errorf("got %.3000q, want %q in it", text, want)
				}
			}
			if got := strings.Contains(string(raw), core.SlackActionApprove); got != c.whole || !strings.Contains(string(raw), core.SlackActionDeny) {
				t.Errorf("it can be approved: %v, want %v", got, c.whole)
			}
		})
	}
}

// manyArguments returns a call with so many arguments.
func manyArguments(n int) string {
	fields := map[string]string{}
	for i := range n {
		fields[fmt.Sprintf("argument %d", i)] = "x"
	}
	raw, _ := json.Marshal(fields)
	return string(raw)
}
