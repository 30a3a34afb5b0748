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
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// longTurns is how long the long conversation is.
func longTurns() int { return apptest.ChooseSize(130, 2000) }

// A provider that counts with another tokenizer plus 15 % and refuses what does not fit 8,192 tokens. W5, W6, W10, W12, R7.
// Log and coverage are the same after a restart. Work per turn does not grow with the session: its statements here, its time in TestShowGrowth. BOBBIN_TEST_LONG=1 makes it
// 2,000 turns and adds PostgreSQL.
func TestShowLong(t *testing.T) {
	if testing.Short() {
		t.Skip("130 turns take a while")
	}
	t.Run("sqlite", func(t *testing.T) { showLong(t, dbtest.MigratedSQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) {
		if !apptest.IsLong() {
			t.Skip("set BOBBIN_TEST_LONG=1, or use make show-long")
		}
		showLong(t, dbtest.PostgresURL(t))
	})
}

func showLong(t *testing.T, url string) {
	p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15})
	h := apptest.New(t, url, apptest.WithModel("house", 8192, 2048, p))
	l := &longTalk{Bobbin: h, t: t, provider: p, id: apptest.NewSession(t, h.Client, ops.NewSession{})}
	w := apptest.NewWriter(1)
	for n := 1; n <= longTurns() && !t.Failed(); n++ {
		l.turn(n, w.Question(n))
	}
	l.check()
	l.report()
	before, log := contextOf(t, h.Client, l.id), apptest.ListMessages(t, h.Client, l.id)
	h.Restart()
	after := contextOf(t, h.Client, l.id)
	compare.Equal(t, "coverage after a restart", before.Coverage, after.Coverage)
	compare.Equal(t, "log after a restart", log, apptest.ListMessages(t, h.Client, l.id))
	l.turn(1, "Is everything there?")
}

// longTalk measures a conversation turn by turn.
type longTalk struct {
	*apptest.Bobbin
	t        *testing.T
	provider *provider.Server
	id       core.SessionID

	asked []string
	turns []int64 // the statements of each turn: odd ones are plain, even ones call a tool
	usage core.Usage
}

// turn says one thing and measures it.
func (l *longTalk) turn(n int, question string) {
	l.t.Helper()
	statements := l.App.Database.Statements()
	got := apptest.SendMessage(l.t, l.Client, core.SendMessage{SessionID: l.id, Content: question})
	l.turns = append(l.turns, l.App.Database.Statements()-statements)
	l.asked = append(l.asked, question)
	l.usage = l.usage.Add(got.Run.Usage)
	compare.Equal(l.t, fmt.Sprintf("turn %d: answer", n), "answer to: "+question, got.Answer.Content)
	want := 2
	if strings.Contains(question, "tool") {
		want = 4
	}
	compare.Equal(l.t, fmt.Sprintf("turn %d: messages", n), want, len(got.Messages))
}

// check holds the log against what was said.
func (l *longTalk) check() {
	l.t.Helper()
	all := apptest.ListMessages(l.t, l.Client, l.id)
	var questions []string
	for _, m := range all {
		if m.Role == core.RoleUser {
			questions = append(questions, m.Content)
		}
	}
	compare.Equal(l.t, "questions in the log", l.asked, questions)
	count := kinds(all)
	for kind, want := range map[string]int{
		"questions": longTurns(), "answers": longTurns(), "tool calls": longTurns() / 2, "tool results": longTurns() / 2,
	} {
		compare.Equal(l.t, kind+" in the log", want, count[kind])
	}
	if l.provider.Largest() > 8192 {
		l.t.Errorf("got a prompt of %d tokens, want at most 8192", l.provider.Largest())
	}
}

// report prints the figures, and wants the number of statements to be flat.
func (l *longTalk) report() {
	l.t.Helper()
	if len(l.turns) < longTurns() {
		return
	}
	r, s := contextOf(l.t, l.Client, l.id), session(l.t, l.Client, l.id)
	fig := apptest.NewTable("%d turns in one session (%s)", longTurns(), l.t.Name())
	fig.AddRow("runs succeeded", len(l.turns), "all; every question verbatim in the log, seq without a gap")
	fig.AddRow("messages in the log", s.MessageCount, fmt.Sprint(kinds(apptest.ListMessages(l.t, l.Client, l.id))))
	fig.AddRow("requests to the provider", l.provider.Requests(), fmt.Sprintf("%d refused as too long, all recovered within their run", l.provider.Rejected()))
	fig.AddRow("largest prompt, as the provider counts", l.provider.Largest(), fmt.Sprintf("window 8192, usable by our estimate %d", r.Usable))
	fig.AddRow("summaries", s.SummaryCount, fmt.Sprintf("%d calls", l.provider.Summaries()))
	fig.AddRow("coverage", r.Coverage.Messages, fmt.Sprintf("%d summarized, %d verbatim, %d masked, %d lost",
		r.Coverage.Summarized, r.Coverage.Verbatim, r.Coverage.Masked, r.Coverage.Lost))
	fig.AddRow("tokens", l.usage.InputTokens+l.usage.OutputTokens, fmt.Sprintf("%d in, %d out; factor %.2f ± %.1f %%",
		l.usage.InputTokens, l.usage.OutputTokens, r.Calibration.Factor, 100*r.Calibration.Deviation))
	fig.AddRow("of turns", "20–70", "the last 51", "ratio")
	for first, kind := range []string{"plain", "with a tool"} { // background loops add theirs to the turns that they meet
		early, late := leastOf(l.turns[19+(first+1)%2:70]), leastOf(l.turns[longTurns()-50+first:])
		growth := float64(late) / float64(early)
		fig.AddRow("  SQL statements (least), "+kind, early, late, fmt.Sprintf("%.2f", growth))
		compare.True(l.t, growth <= 1.3, "turns, %s: got %.2f times as many statements in late ones, want at most 1.3", kind, growth)
	}
	fig.Log(l.t)
}

// leastOf returns the least of every second number.
func leastOf(numbers []int64) int64 {
	least := numbers[0]
	for n := 0; n < len(numbers); n += 2 {
		least = min(least, numbers[n])
	}
	return least
}

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
		compare.Equal(t, "the summary, and the notes dropped", "active dropped dropped dropped", statesOf(must.Get(client.Call(t.Context(), h, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: id}}))(t).Items))
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
