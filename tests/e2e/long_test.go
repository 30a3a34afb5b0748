package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
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
	statements := l.App.Statements()
	got := apptest.SendMessage(l.t, l.Client, core.SendMessage{SessionID: l.id, Content: question})
	l.turns = append(l.turns, l.App.Statements()-statements)
	l.asked = append(l.asked, question)
	l.usage = l.usage.Add(got.Run.Usage)
	if want := "answer to: " + question; got.Answer.Content != want {
		l.t.Errorf("turn %d: got the answer %.80q, want %.80q", n, got.Answer.Content, want)
	}
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
	if !slices.Equal(questions, l.asked) {
		l.t.Errorf("got %d questions in the log that are not the %d asked", len(questions), len(l.asked))
	}
	count := kinds(all)
	for kind, want := range map[string]int{
		"questions": longTurns(), "answers": longTurns(), "tool calls": longTurns() / 2, "tool results": longTurns() / 2,
	} {
		if count[kind] != want {
			l.t.Errorf("got %d %s in the log, want %d", count[kind], kind, want)
		}
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
		if growth > 1.3 {
			l.t.Errorf("turns, %s: got %.2f times as many statements in late ones, want at most 1.3", kind, growth)
		}
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
