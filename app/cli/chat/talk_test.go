package chat_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func TestAnswers(t *testing.T) {
	t.Parallel()
	answer := core.Message{ID: "m", Role: core.RoleAssistant, Content: "Hello there"}
	delta := func(text string) core.Event {
		return event(t, core.EventMessageDelta, core.DeltaData{MessageID: "m", Text: text})
	}
	created := event(t, core.EventMessageCreated, core.MessageData{Message: answer})
	tests := []struct {
		name   string
		events []core.Event
		want   string
	}{
		{"streamed", []core.Event{delta("Hello "), delta("there"), created}, "Hello there\n"},
		{"not streamed", []core.Event{created}, "Hello there\n"},
		{"the user's own", []core.Event{event(t, core.EventMessageCreated, core.MessageData{Message: core.Message{Role: core.RoleUser, Content: "hi"}})}, ""},
		{"tool", []core.Event{
			event(t, core.EventToolStarted, core.ToolStartedData{Name: "calculator", Arguments: "{\n\"x\": 1}"}),
			event(t, core.EventToolFinished, core.ToolFinishedData{Preview: "3\x1b[2J\n91"}), created,
		}, "· calculator { \"x\": 1}\n· → 3[2J 91\nHello there\n"},
		{"begun again", []core.Event{delta("Hel"), event(t, core.EventMessageDiscarded, core.DiscardedData{MessageID: "m"}), created},
			"Hel\n· the answer was interrupted and starts again\nHello there\n"},
		{"canceled", []core.Event{delta("Hel"), event(t, core.EventRunCanceled, core.RunData{})}, "Hel\n· stopped; the partial answer is kept\n"},
		{"failed", []core.Event{delta("Hel"), event(t, core.EventRunFailed, core.RunData{Run: core.Run{Error: &core.RunError{Message: "no credit"}}})},
			"Hel\n! no credit\n"},
		{"summarized", []core.Event{
			event(t, core.EventContextStarted, core.ContextData{}),
			event(t, core.EventContextCompleted, core.ContextData{MessagesCovered: 9, TokensBefore: 9000, TokensAfter: 90}),
			event(t, core.EventContextWarning, core.ContextData{Reason: "almost full"}), created,
		}, "· summarizing earlier messages …\n· summarized 9 messages: prompt 9,000 → 90 tokens\n· almost full\nHello there\n"},
		{"tool loop", []core.Event{ // L6
			event(t, core.EventContextStarted, core.ContextData{Kind: core.SummaryRun}),
			event(t, core.EventContextCompleted, core.ContextData{
				Kind: core.SummaryRun, MessagesCovered: 10, MessagesBefore: 19, MessagesAfter: 10, TokensBefore: 61_000, TokensAfter: 24_500,
			}), created,
		}, "· summarizing earlier tool calls …\n· summarized 10 tool messages: prompt 19 → 10 messages, 61,000 → 24,500 tokens\nHello there\n"},
		{"unreadable", []core.Event{{Type: core.EventMessageDelta, Data: json.RawMessage("{")}, created}, "Hello there\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := &fake{send: events(tt.events...)}
			c, out := conversation(f, nil, "hi")
			must.Do(t, c.Run(t.Context()))
			compare.Equal(t, "", tt.want, out.String())
		})
	}
}

// A session is made with the first message, and once.
func TestSessionIsMadeWhenNeeded(t *testing.T) {
	t.Parallel()
	f := &fake{send: events()}
	c, _ := conversation(f, nil, "", "  ", "/help", "/quit", "never")
	if err := c.Run(t.Context()); err != nil || len(f.calls) != 0 {
		t.Errorf("without a message: %v, calls %q, want none", err, f.calls)
	}
	c, _ = conversation(f, nil, " one ", "two\n/context", "/etc/hosts is a file", "^C", "/context")
	must.Do(t, c.Run(t.Context()))
	want := []string{"create a", "send new one", "send new two\n/context", "send new /etc/hosts is a file", "context new"}
	compare.Equal(t, "calls", want, f.calls)
	compare.Equal(t, "session", "new", c.Session.ID)
}

func TestCommands(t *testing.T) {
	t.Parallel()
	f := &fake{
		report: core.ContextReport{Model: "gpt-4o", Policy: "window"},
		summary: func(_ context.Context, focus string) (core.Summary, error) {
			if focus == "" {
				return core.Summary{}, core.Errorf(core.ErrUnprocessable, "there is nothing to summarize")
			}
			return core.Summary{Version: 2, MessagesCovered: 8, TokenCount: 120, Strategy: "llm", Duration: 1500 * time.Millisecond, Note: "short"}, nil
		},
	}
	tests := []struct{ typed, want string }{
		{"/help", "/summarize [focus]"},
		{"/context", "gpt-4o · policy window"},
		{"/summarize", "! there is nothing to summarize\n"},
		{"/summarize the names", "· summary v2: 8 messages → 120 cl100k tokens (llm, 1.5 s)\n  short\n"},
		{"/contxt", "! unknown command /contxt; did you mean /context?\n"},
		{"/zzzzzzz", "! unknown command /zzzzzzz; /help lists all commands\n"},
		{"^C", "(press Ctrl-D or type /quit to quit)\n"},
	}
	for _, tt := range tests {
		c, out := conversation(f, nil, tt.typed)
		if err := c.Run(t.Context()); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%s: %v, %q, want %q", tt.typed, err, out.String(), tt.want)
		}
	}
}

// A sitting goes from one conversation to the next, has an answer given anew, and by whom.
func TestSitting(t *testing.T) {
	t.Parallel()
	answer := core.Message{ID: "m9", Role: core.RoleAssistant, Content: "hello"}
	f := &fake{send: events(event(t, core.EventMessageCreated, core.MessageData{Message: answer}))}
	c, out := conversation(f, nil, "/retry", "/model", "one", "/model gpt-9", "/model big", "/retry", "/model", "/new", "two", "/search pump")
	must.Do(t, c.Run(t.Context()))
	want := []string{"create a", "send new one", `regenerate new m9 by "big"`, "create a", "send new two by big", "search  pump"}
	compare.Equal(t, "calls", want, f.calls)
	for _, says := range []string{"! there are no messages yet", "this chat uses small; /model <name> changes it: small, big\n", `! "gpt-9" cannot be used; the models are small, big`, "this chat now uses big", "this chat uses big; ", "new conversation; the previous one was new"} {
		compare.True(t, strings.Contains(out.String(), says), "no %q in %q", says, out)
	}
}

// Ctrl-C stops the answer and not the conversation; what came before the message
// does not count.
func TestInterruptCancelsTheRun(t *testing.T) {
	t.Parallel()
	interrupts, canceled := make(chan os.Signal, 1), make(chan struct{})
	interrupts <- os.Interrupt
	f := &fake{cancel: func(context.Context) error { close(canceled); return nil }}
	f.send = func(_ context.Context, yield func(core.Event, error) bool) {
		yield(event(t, core.EventRunStarted, core.RunData{}), nil)
		interrupts <- os.Interrupt
		<-canceled
		yield(event(t, core.EventRunCanceled, core.RunData{}), nil)
	}
	c, out := conversation(f, interrupts, "hi", "/help")
	must.Do(t, c.Run(t.Context()))
	compare.Equal(t, "calls", []string{"create a", "send new hi", "cancel r"}, f.calls)
	compare.True(t, strings.HasPrefix(out.String(), "· stopped; the partial answer is kept\n  /context"), "got %q", out.String())
}

// A file goes with the next message that is accepted, and with none after it.
func TestAttach(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	note, empty := filepath.Join(dir, "my note.txt"), filepath.Join(dir, "empty")
	for name, content := range map[string]string{note: "hello", empty: ""} {
		must.Do(t, os.WriteFile(name, []byte(content), 0o600))
	}
	f := &fake{send: events(event(t, core.EventRunStarted, core.RunData{}))}
	c, out := conversation(f, nil, "/attach", "/attach "+note, `/attach "`+note+`"`, "/attach", "/attach "+empty,
		"/attach "+dir, "/attach /no/such file", "look", "and now?", "/atach x")
	must.Do(t, c.Run(t.Context()))
	want := []string{
		"upload my note.txt hello", `upload my note.txt hello`, "upload empty ", "create a",
		"send new look +blob my note.txt +blob my note.txt", "send new and now?",
	}
	compare.Equal(t, "calls", want, f.calls)
	for _, words := range []string{
		"! nothing is attached; use /attach <path>", `· attached to the next message: file "my note.txt", text/plain, 5 bytes`,
		"· attached to the next message: file", "it is empty", "is not a file", "stat /no/such file: no such file or directory", "did you mean /attach?",
	} {
		compare.Contains(t, "words of the chat", strings.ToLower(words), strings.ToLower(out.String()))
	}
}

// In the terminal: the summary, what it changed, undo, and where a message
// is.
func TestControlCommands(t *testing.T) {
	t.Parallel()
	const id = "01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"
	for _, tt := range []struct {
		typed   string
		version int // in use
		will    bool
		want    string // the beginning
		call    string // the last one
	}{
		{"/summary", 2, false, "summary v2: 8 messages → 90 cl100k tokens\n  covers messages up to #7\n  focus: names\n\n## Facts\n- Rex is a dog.\n", "session s"},
		{"/summary v1", 2, false, "summary v1: 4 messages", ""},
		{"/summary 9", 2, false, "! there is no version 9\n", ""},
		{"/summary", 0, false, "! there is no active summary; /summarize creates one, /summary list shows earlier versions\n", "session s"},
		{"/summary diff", 0, false, "! there is no active summary", "session s"},
		{"/summary list", 2, false, "  summary v2: 8 messages → 90 cl100k tokens\n  earlier v1: 4 messages → 50 cl100k tokens\n  and older ones\n", ""},
		{"/summary diff", 2, false, "version 2 compared to version 1: 1 added, 1 removed, 2 unchanged\n  ## Facts\n- - Rex barks.\n+ - Rex sleeps.\n", "diff 2 <nil>"},
		{"/summary diff 1", 2, false, "version 1 compared to", "diff 1 <nil>"},
		{"/summary restore 1", 2, false, "· restored version 1 as version 3: it covers 4 of 12 messages\n", "context s"},
		{"/summary nonsense", 2, false, "! use /summary, /summary 2, /summary list, /summary diff, or /summary restore 2\n", ""},
		{"/undo", 2, true, "· restored version 1 as version 3: it covers 4 of 12 messages; to undo: /summary restore 2\n  summarization will trigger on the next message\n", "context s"},
		{"/undo", 1, false, "· no active summary: 12 messages in history; to undo: /summary restore 1\n", "context s"},
		{"/undo", 0, false, "! there is no summary to undo\n", "session s"},
		{"/why dog", 0, false, "#12 user: summarized, pinned\n    my [dog] is\n    It is covered.\n    Not for long.\n    1,000 tokens stored (1,100 for m), 0 in the prompt\nthere are more; these are the 1 newest\n", "where m12"},
		{"/why #12", 0, false, "#12 user: summarized, pinned\n    my dog\n", "where m12"},
		{"/why 7", 0, false, "#12 user", "where m7"},
		{"/why #99", 0, false, "! message #99 does not exist or was deleted\n", ""},
		{"/why " + id, 0, false, "#12 user: summarized, pinned\n    It is covered.", "where " + id},
		{"/why cat", 0, false, "! no message of this conversation contains all these words;", "search s cat"},
		{"/why", 0, false, "! which message? use /why with words from it, or with its number: /why #12\n", ""},
	} {
		f := &fake{session: core.Session{SummaryVersion: tt.version}, report: core.ContextReport{WillTrigger: tt.will}}
		c, out := conversation(f, nil, tt.typed)
		c.Session.ID = "s"
		if err := c.Run(t.Context()); err != nil || !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", tt.typed, err, out.String(), tt.want)
		}
		if tt.call != "" && (len(f.calls) == 0 || f.calls[len(f.calls)-1] != tt.call) {
			t.Errorf("%s: calls %q, want %q last", tt.typed, f.calls, tt.call)
		}
	}
}

// /undo goes back to the newest version that was in use before on this path: not
// one that was taken back, made ahead, of a run or of another branch, nor what the one
// in use repeats; without any it is none at all.
func TestUndoSummary(t *testing.T) {
	t.Parallel()
	now, through := core.Now(), core.MessageID("m5")
	version := func(n int, state core.SummaryState, content string) core.Summary {
		return core.Summary{Version: n, Kind: core.SummaryRolling, State: state, Content: content, ThroughID: through, ActivatedAt: &now}
	}
	ahead, run := version(6, core.SummaryDropped, "made ahead"), version(5, core.SummaryDropped, "of a run")
	ahead.ActivatedAt, run.Kind = nil, core.SummaryRun
	for to, elsewhere := range map[int][]int{2: {3}, 0: {3, 2, 1}} {
		f := &fake{session: core.Session{SummaryVersion: 8, ConversationSummary: new("in use"), SummaryThroughID: &through}, elsewhere: elsewhere, summaries: []core.Summary{
			version(9, core.SummaryPrepared, "next"), version(8, core.SummaryActive, "in use"), version(7, core.SummaryUndone, "undone"), ahead, run,
			version(4, core.SummaryDropped, "in use"), version(3, core.SummaryDropped, "another branch"), version(2, core.SummaryDropped, "before"), version(1, core.SummaryDropped, "first"),
		}}
		c, _ := conversation(f, nil, "/undo")
		c.Session.ID = "s"
		must.Do(t, c.Run(t.Context()))
		compare.Equal(t, "calls", []string{"session s", fmt.Sprint("restore ", to), "context s"}, f.calls)
	}
}

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
		"yes": {[]core.Event{question("a", core.ApprovalOpen), waits, question("a", core.ApprovalApproved), done}, []string{" Yes "}, []string{"approve r a "}, asked + choice + "done\n"},
		"no, with a reason": {
			[]core.Event{question("a", core.ApprovalOpen), waits, question("a", core.ApprovalDenied), done},
			[]string{"", "perhaps", "n not  today "},
			[]string{"deny r a not  today"}, asked + choice + choice + choice + "· pay: not approved\ndone\n",
		},
		"two, one of them decided elsewhere": {
			[]core.Event{question("a", core.ApprovalOpen), question("b", core.ApprovalOpen), question("b", core.ApprovalExpired), waits, done},
			[]string{"n"}, []string{"deny r a "}, "· pay: not approved\n" + asked + choice + "done\n",
		},
		"somebody was quicker": {[]core.Event{question("taken", core.ApprovalOpen), waits, done}, []string{"y"}, []string{"approve r taken "}, asked + choice + "! it was denied by bob\ndone\n"},
		"server away":          {[]core.Event{question("broken", core.ApprovalOpen), waits, done}, []string{"y"}, []string{"approve r broken "}, asked + choice + "! the server is away\n"},
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
			must.Do(t, c.Run(t.Context()))
			compare.Equal(t, "", tt.want, out.String())
			var calls []string
			for _, call := range f.calls {
				if strings.HasPrefix(call, "approve") || strings.HasPrefix(call, "deny") || strings.HasPrefix(call, "cancel") {
					calls = append(calls, call)
				}
			}
			compare.Equal(t, "calls", tt.calls, calls)
		})
	}
}

// Ctrl-C stops a command, unless that has just succeeded.
func TestInterruptStopsACommand(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{"! stopped": context.Canceled, "v7": nil} {
		interrupts := make(chan os.Signal, 1)
		f := &fake{summary: func(ctx context.Context, _ string) (core.Summary, error) {
			interrupts <- os.Interrupt
			<-ctx.Done()
			return core.Summary{Version: 7}, err
		}}
		c, out := conversation(f, interrupts, "/summarize")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		must.Do(t, c.Run(ctx))
		text := out.String()
		compare.True(t, strings.Contains(text, want) && strings.Contains(text, "! stopped") != (err == nil), "got %q, want %s", text, want)
	}
}

// A second Ctrl-C, or one that cannot cancel, ends the waiting.
func TestInterruptEndsTheWaiting(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		begun  bool // the run's id was told
		cancel error
		keys   int
	}{{"twice", true, nil, 2}, {"before the run is known", false, nil, 2}, {"cannot cancel", true, errors.New("no server"), 1}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			interrupts := make(chan os.Signal)
			f := &fake{cancel: func(context.Context) error { return tt.cancel }}
			f.send = func(ctx context.Context, yield func(core.Event, error) bool) {
				if tt.begun {
					yield(event(t, core.EventRunStarted, core.RunData{}), nil)
				}
				for range tt.keys {
					interrupts <- os.Interrupt
				}
				<-ctx.Done()
				yield(core.Event{}, context.Cause(ctx))
			}
			c, out := conversation(f, interrupts, "hi")
			must.Do(t, c.Run(t.Context()))
			compare.True(t, strings.HasPrefix(out.String(), "! stopped waiting"), "got %q", out.String())
		})
	}
}
