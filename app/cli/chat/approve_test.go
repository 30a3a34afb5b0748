package chat_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

// The question whether a tool may start is shown with all its arguments, and
// answered in the conversation.
func TestQuestionsAreAnswered(t *testing.T) {
	t.Parallel()
	question := func(id core.ApprovalID, status core.ApprovalStatus) core.Event {
		kind := core.EventApprovalRequested
		if status != core.ApprovalOpen {
			kind = core.EventApprovalDecided
		}
		return event(t, kind, core.ApprovalData{Approval: core.Approval{ID: id, RunID: "r", Tool: "pay", Arguments: "{\"eur\":\x1b[2J 5}", Status: status}})
	}
	clientCall := func(status core.ApprovalStatus) core.Event {
		e := question("c", status)
		e.Data = core.ApprovalData{Approval: core.Approval{ID: "c", Kind: core.KindClientTool, RunID: "r", Tool: "pay", Arguments: "{}", Status: status}}
		return e
	}
	const asked, choice = "? Allow pay? {\"eur\":\\u001b[2J 5}\n", "  y = yes, n = no, n <reason> = no, and tell the agent why\n"
	waits, done := event(t, core.EventRunWaiting, core.RunData{}), event(t, core.EventMessageCreated, core.MessageData{Message: core.Message{Role: core.RoleAssistant, Content: "done"}})
	tests := map[string]struct {
		events []core.Event
		lines  []string
		calls  []string
		want   string
	}{
		"yes": {[]core.Event{question("a", core.ApprovalOpen), waits, question("a", core.ApprovalApproved), done}, []string{" Yes "}, []string{"decide r a true "}, asked + choice + "done\n"},
		"no, with a reason": {
			[]core.Event{question("a", core.ApprovalOpen), waits, question("a", core.ApprovalDenied), done},
			[]string{"", "perhaps", "n not  today "},
			[]string{"decide r a false not  today"}, asked + choice + choice + choice + "· pay: not approved\ndone\n",
		},
		"two, one of them decided elsewhere": {
			[]core.Event{question("a", core.ApprovalOpen), question("b", core.ApprovalOpen), question("b", core.ApprovalExpired), waits, done},
			[]string{"n"}, []string{"decide r a false "}, "· pay: not approved\n" + asked + choice + "done\n",
		},
		"somebody was quicker": {[]core.Event{question("taken", core.ApprovalOpen), waits, done}, []string{"y"}, []string{"decide r taken true "}, asked + choice + "! it was denied by bob\ndone\n"},
		"server away":          {[]core.Event{question("broken", core.ApprovalOpen), waits, done}, []string{"y"}, []string{"decide r broken true "}, asked + choice + "! the server is away\n"},
		"Ctrl-C":               {[]core.Event{question("a", core.ApprovalOpen), waits, event(t, core.EventRunCanceled, core.RunData{})}, []string{"^C"}, []string{"cancel r"}, asked + choice + "· stopped; the partial answer is kept\n"},
		"a client's tool": {
			[]core.Event{clientCall(core.ApprovalOpen), waits, clientCall(core.ApprovalAnswered), done}, nil, nil,
			"· pay {}: waiting for the result, which the program that brought this tool sends\n· pay: answered\ndone\n",
		},
		"nobody there": {[]core.Event{question("a", core.ApprovalOpen), waits, done}, nil, nil, asked + choice + "! the run waits for an approval: decide with bobbin runs approve r, or deny\n"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fake{send: events(tt.events...), cancel: func(context.Context) error { return nil }}
			c, out := conversation(f, nil, append([]string{"go"}, tt.lines...)...)
			if err := c.Run(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			var calls []string
			for _, call := range f.calls {
				if strings.HasPrefix(call, "decide") || strings.HasPrefix(call, "cancel") {
					calls = append(calls, call)
				}
			}
			if diff := cmp.Diff(tt.calls, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

// Who only asks gets no help for an answer that nobody can type.
func TestQuestionsUnattended(t *testing.T) {
	t.Parallel()
	asked := core.ApprovalData{Approval: core.Approval{ID: "a", RunID: "r", Tool: "pay", Arguments: "{}", Status: core.ApprovalOpen}}
	f := &fake{send: events(event(t, core.EventApprovalRequested, asked), event(t, core.EventRunWaiting, core.RunData{}))}
	c, out := conversation(f, nil)
	c.Attended = false
	err := c.Ask(t.Context(), "go")
	if want := "? Allow pay? {}\n"; err == nil || !strings.Contains(err.Error(), "runs approve r") || out.String() != want {
		t.Errorf("got %q, %v, want %q and how to decide", out.String(), err, want)
	}
}
