package e2e_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// L2, L5, L6: an agent with 30 tool rounds. Its prompts stay bounded and begin with the one before, the notes
// are rows of kind run, and neither the next turn nor /summarize brings the long version back to the model: the
// rolling summary is made of the messages themselves.
func TestLoopOfThirtyRounds(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		const resultBytes = 20_000 // about 4,700 tokens
		var file core.MessageID    // the result that the tool reads
		var rounds atomic.Int64
		p := apptest.NewProvider(t, provider.Options{Window: 128_000, Record: true, Calls: func(provider.Received) []provider.Call {
			n := rounds.Add(1)
			if n > 30 {
				return nil
			}
			return []provider.Call{{ID: fmt.Sprintf("read_%d", n), Name: "read_result", Arguments: fmt.Sprintf(`{"message_id":%q,"offset":%d,"length":%d}`, file, 10*n, resultBytes)}}
		}})
		h := apptest.New(t, url, apptest.WithModel("house", 128_000, 2048, p), apptest.WithAgent("worker", "name: worker\nsystem_prompt: You read files.\ntools: [read_result]\nmax_iterations: 100\n"))
		id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "worker"})
		var book strings.Builder // it says something else everywhere
		for i := 0; book.Len() < 3*resultBytes/2; i++ {
			fmt.Fprintf(&book, "Line %d: item %d of the inventory weighs %d kg. ", i, i*7%1000, i*13%400)
		}
		bringIn(t, h.Client, id, core.ImportLines, line(t, map[string]any{"role": "user", "content": "Fetch the file."})+
			line(t, map[string]any{"role": "assistant", "tool_calls": []any{map[string]any{"id": "c0", "type": "function", "function": map[string]any{"name": "fetch", "arguments": "{}"}}}})+
			line(t, map[string]any{"role": "tool", "tool_call_id": "c0", "name": "fetch", "content": book.String()})+
			line(t, map[string]any{"role": "assistant", "content": "It is there."}))
		file = apptest.ListMessages(t, h.Client, id)[2].ID

		got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Read all of it."})
		if n := len(got.Messages); n != 1+2*30+1 {
			t.Fatalf("got %d messages, want 30 rounds between question and answer", n)
		}
		requests := p.Received()
		round, largest, breaks := requests[2].Tokens-requests[1].Tokens, 0, 0
		for i, r := range requests {
			if largest = max(largest, r.Tokens); i > 0 && !beginsWith(r, requests[i-1]) {
				breaks++ // where notes take the place of older rounds (R5)
			}
		}
		if largest > requests[0].Tokens+(8+3)*round+3_000 || largest < 8*round || breaks != 3 {
			t.Errorf("got a prompt of %d tokens and %d breaks, want no more than 11 rounds of %d and notes, and 3", largest, breaks, round)
		}
		notes := must.Get(client.Call(t.Context(), h, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t).Items // the newest first
		if states := statesOf(notes); states != "active dropped dropped" || notes[0].Kind != core.SummaryRun || notes[0].MessagesCovered != 2*21 || notes[0].FromSeq != 6 || notes[0].ThroughSeq != 47 {
			t.Errorf("got notes %+v, want three, the newest on 21 rounds", notes)
		}
		if r := contextOf(t, h.Client, id); r.Coverage.Compacted != 42 || r.Coverage.Verbatim != 4+1+18+1 {
			t.Errorf("coverage %+v, want 42 messages in notes", r.Coverage)
		}

		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Thank you."})
		next := p.Received()[len(requests)]
		const joined = 1 // the question and the notes: this provider may want roles that alternate (L5)
		if next.Tokens > requests[0].Tokens+9*round+3_000 || len(next.Messages) != 4+joined+18+1+1 || !strings.Contains(string(next.Body), "Notes on the work so far, in place of messages #6–#47") {
			t.Errorf("the next turn has %d messages and %d tokens, want the notes in it", len(next.Messages), next.Tokens)
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "You are welcome."})
		if made := must.Get(client.Call(t.Context(), h, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}))(t); made.Kind != core.SummaryRolling || made.ThroughSeq != 66 || made.MessagesAdded != 66 {
			t.Errorf("got %+v, want a summary of all messages up to the last turn", made)
		}
		if states := statesOf(must.Get(client.Call(t.Context(), h, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t).Items); states != "active dropped dropped dropped" {
			t.Errorf("the summary and the notes are %s, want these dropped", states)
		}
		if r := contextOf(t, h.Client, id); r.Coverage.Compacted != 0 || r.Coverage.Summarized != 66 || r.Used > next.Tokens/2 {
			t.Errorf("context %+v, %d tokens: want the summary in place of the notes", r.Coverage, r.Used)
		}
	})
}

// beginsWith reports whether the request repeats all of the one before.
func beginsWith(r, before provider.Received) bool {
	return slices.Equal(r.System, before.System) && bytes.Equal(r.RawTools, before.RawTools) && len(r.Messages) >= len(before.Messages) &&
		slices.EqualFunc(r.Messages[:len(before.Messages)], before.Messages, func(a, b provider.Message) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// statesOf returns the states of the summaries.
func statesOf(list []core.Summary) string {
	var states []string
	for _, s := range list {
		states = append(states, string(s.State))
	}
	return strings.Join(states, " ")
}
