package e2e_test

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// resultBytes is how much each round of a tool loop reads: about 4,700 tokens.
const resultBytes = 20_000

// looper is a Bobbin whose model calls a tool again and again before it answers.
type looper struct {
	*apptest.Bobbin
	t        *testing.T
	provider *provider.Server
	id       core.SessionID
	file     core.MessageID // the result that the tool reads

	mu    sync.Mutex
	left  int         // calls before the answer; guarded by mu
	made  int         // calls so far; guarded by mu
	at    map[int]any // what to do before the call of that number: func(); guarded by mu
	notes string      // of the summarizer; empty = the provider's own
}

// newLooper starts one. Compaction is the section of the agent's file.
func newLooper(t *testing.T, url string, window int, compaction string) *looper {
	t.Helper()
	l := &looper{t: t, at: map[int]any{}}
	l.provider = apptest.NewProvider(t, provider.Options{Window: window, Record: true, Calls: l.calls, Fault: l.fault})
	l.Bobbin = apptest.New(t, url, apptest.WithModel("house", window, 2048, l.provider), apptest.WithGrace(1), apptest.WithAgent("worker",
		"name: worker\nsystem_prompt: You read files.\ntools: [read_result]\nmax_iterations: 100\n"+compaction))
	l.id = apptest.NewSession(t, l.Client, core.Session{Agent: "worker"})
	text := line(t, map[string]any{"role": "user", "content": "Fetch the file."}) +
		line(t, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "c0", "type": "function", "function": map[string]any{"name": "fetch", "arguments": "{}"}}}}) +
		line(t, map[string]any{"role": "tool", "tool_call_id": "c0", "name": "fetch", "content": book(1.5 * resultBytes)}) +
		line(t, map[string]any{"role": "assistant", "content": "It is there."})
	bringIn(t, l.Client, l.id, core.ImportLines, text)
	l.file = apptest.ListMessages(t, l.Client, l.id)[2].ID
	return l
}

// book is a text of so many bytes that says something else everywhere.
func book(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "Line %d: item %d of the inventory weighs %d kg. ", i, i*7%1000, i*13%400)
	}
	return b.String()[:size]
}

// calls is the model: it reads on until it was told to answer.
func (l *looper) calls(provider.Received) []provider.Call {
	l.mu.Lock()
	if l.left == 0 {
		l.mu.Unlock()
		return nil
	}
	l.left--
	l.made++
	n := l.made
	do := l.at[n]
	delete(l.at, n)
	l.mu.Unlock()
	if f, ok := do.(func()); ok {
		f()
	}
	return []provider.Call{{ID: fmt.Sprintf("read_%d", n), Name: "read_result",
		Arguments: fmt.Sprintf(`{"message_id":%q,"offset":%d,"length":%d}`, l.file, 10*n, resultBytes)}}
}

// fault answers for the summarizer where the test has words for it.
func (l *looper) fault(w http.ResponseWriter, a provider.Asked) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.Summary || l.notes == "" {
		return false
	}
	stream(w, map[string]any{"content": l.notes}, "stop")
	return true
}

// work has the model make so many calls before its answer.
func (l *looper) work(rounds int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = rounds
}

// loops returns the notes of the session, oldest first.
func (l *looper) loops() []core.Summary {
	l.t.Helper()
	page, err := l.Summaries(l.t.Context(), l.id, core.PageQuery{Limit: core.MaxPageLimit})
	if err != nil {
		l.t.Fatal(err)
	}
	var out []core.Summary
	for _, s := range slices.Backward(page.Items) {
		if s.Kind == core.SummaryRun {
			out = append(out, s)
		}
	}
	return out
}

// states returns the states of the notes, oldest first.
func states(notes []core.Summary) string {
	var out []string
	for _, n := range notes {
		out = append(out, string(n.State))
	}
	return strings.Join(out, " ")
}

// sizesOf returns what the requests had, in the provider's tokens.
func sizesOf(requests []provider.Received) []int {
	var out []int
	for _, r := range requests {
		out = append(out, r.Tokens)
	}
	return out
}

// L2, L5, L6: an agent with 30 tool rounds. Its prompts stay bounded, the
// notes are rows of kind run, and neither the next turn nor /summarize brings the long
// version back to the model: the rolling summary is made of the messages themselves.
func TestLoopOfThirtyRounds(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		l := newLooper(t, url, 128_000, "")
		l.work(30)
		got := apptest.SendMessage(t, l.Client, core.SendMessage{SessionID: l.id, Content: "Read all of it."})
		if n := len(got.Messages); n != 1+2*30+1 {
			t.Fatalf("got %d messages, want 30 rounds between question and answer", n)
		}
		requests := l.provider.Received()
		round := requests[2].Tokens - requests[1].Tokens
		if most := slices.Max(sizesOf(requests)); most > requests[0].Tokens+(8+3)*round+3_000 || most < 8*round {
			t.Errorf("got a prompt of %d tokens, want no more than 11 rounds of %d and notes: %v", most, round, sizesOf(requests))
		}
		l.wantGrowingAtTheEnd(requests, 3)
		l.wantEvents(got)
		notes := l.loops()
		if len(notes) != 3 || states(notes) != "dropped dropped active" || notes[2].MessagesCovered != 2*21 || notes[2].FromSeq != 6 || notes[2].ThroughSeq != 47 {
			t.Errorf("got notes %+v, want three, the last on 21 rounds", notes)
		}
		r := contextOf(t, l.Client, l.id)
		if r.Coverage.Compacted != 42 || r.Coverage.Verbatim != 4+1+18+1 {
			t.Errorf("coverage %+v, want 42 messages in notes", r.Coverage)
		}

		apptest.SendMessage(t, l.Client, core.SendMessage{SessionID: l.id, Content: "Thank you."})
		next := l.provider.Received()[len(requests)]
		const joined = 1 // the question and the notes: this provider may want roles that alternate (L5)
		if next.Tokens > requests[0].Tokens+9*round+3_000 || len(next.Messages) != 4+joined+18+1+1 {
			t.Errorf("the next turn has %d messages and %d tokens, want the notes in it", len(next.Messages), next.Tokens)
		}
		if !strings.Contains(string(next.Body), "Notes on the work so far, in place of messages #6–#47") {
			t.Error("the next turn does not have the notes")
		}
		l.wantRollingSummary(next.Tokens)
	})
}

// wantGrowingAtTheEnd wants each prompt to begin with the one before, but for where the
// older rounds were replaced (R5).
func (l *looper) wantGrowingAtTheEnd(requests []provider.Received, compactions int) {
	l.t.Helper()
	breaks := 0
	for i, r := range requests[1:] {
		before := requests[i]
		same := slices.Equal(r.System, before.System) && bytes.Equal(r.RawTools, before.RawTools)
		if !same {
			l.t.Errorf("request %d: the system prompt or the tools changed", i+2)
		}
		for k, m := range before.Messages {
			same = same && k < len(r.Messages) && bytes.Equal(m.Raw, r.Messages[k].Raw)
		}
		if !same {
			breaks++
		}
	}
	if breaks != compactions {
		l.t.Errorf("%d prompts do not begin with the one before, want %d", breaks, compactions)
	}
}

// wantEvents looks at what watchers were told. L6.
func (l *looper) wantEvents(got apptest.Turn) {
	l.t.Helper()
	n := 0
	for _, e := range got.Events {
		if e.Type != core.EventContextCompleted {
			continue
		}
		n++
		d := apptest.EventData[core.ContextData](l.t, e)
		if d.Kind != core.SummaryRun || d.Trigger != "iterations" || d.MessagesBefore <= d.MessagesAfter || d.TokensBefore <= d.TokensAfter || d.Version != n {
			l.t.Errorf("got %+v, want notes and what they did", d)
		}
	}
	if n != 3 {
		l.t.Errorf("got %d compactions told, want 3", n)
	}
	run, err := l.Run(l.t.Context(), got.Run.ID)
	if err != nil || !strings.Contains(string(run.Context), "42 messages of tool loops are replaced by notes") {
		l.t.Errorf("the run's report: %v, %s", err, run.Context)
	}
}

// wantRollingSummary summarizes: what was told by notes is read itself, and then they
// are out of use.
func (l *looper) wantRollingSummary(before int) {
	l.t.Helper()
	apptest.SendMessage(l.t, l.Client, core.SendMessage{SessionID: l.id, Content: "You are welcome."})
	l.mu.Lock()
	l.notes = "## Goal\nRead the file. It was read to line 700."
	l.mu.Unlock()
	made, err := l.Summarize(l.t.Context(), l.id, "")
	if err != nil {
		l.t.Fatal(err)
	}
	if made.Kind != core.SummaryRolling || made.ThroughSeq != 66 || made.MessagesAdded != 66 {
		l.t.Errorf("got %+v, want a summary of all messages up to the last turn", made)
	}
	if s := states(l.loops()); s != "dropped dropped dropped" {
		l.t.Errorf("the notes are %s, want them dropped", s)
	}
	if r := contextOf(l.t, l.Client, l.id); r.Coverage.Compacted != 0 || r.Coverage.Summarized != 66 || r.Used > before/2 {
		l.t.Errorf("context %+v, %d tokens: want the summary in place of the notes", r.Coverage, r.Used)
	}
}
