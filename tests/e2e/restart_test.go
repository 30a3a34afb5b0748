package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// The demonstration model on a configuration that is otherwise the default, SQLite and PostgreSQL by
// database.url alone. W6, W7, W10: seq and the log survive a restart.
func TestShowRestart(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, ops.NewSession{Title: "a long talk"})
		fig := apptest.NewTable("A session across a restart (%s, demonstration model)", t.Name())
		talk(t, h.Client, id, fig)

		before, log := contextOf(t, h.Client, id), apptest.ListMessages(t, h.Client, id)
		summary := session(t, h.Client, id)
		if summary.SummaryVersion == 0 {
			t.Error("got no summary, want one: the test shows nothing")
		}
		fig.AddRow("messages in the log", len(log), fmt.Sprint(kinds(log)))
		fig.AddRow("/context", fmt.Sprintf("%d of %d tokens used", before.Used, before.Usable),
			fmt.Sprintf("sections sum to %d, prompt view the same", before.Used))
		fig.AddRow("coverage", fmt.Sprintf("%d messages", before.Coverage.Messages),
			fmt.Sprintf("%d summarized, %d verbatim, %d lost", before.Coverage.Summarized, before.Coverage.Verbatim, before.Coverage.Lost))
		fig.AddRow("summaries", summary.SummaryCount, lastSummary(before))

		h.Restart()
		after := contextOf(t, h.Client, id)
		meanwhile := cmpopts.IgnoreFields(core.ContextReport{}, "Prepared", "Summarizing", "Since", "Versions") // nobody waits for it
		compare.Equal(t, "context after the restart", before, after, meanwhile)
		compare.Equal(t, "log after the restart", log, apptest.ListMessages(t, h.Client, id))
		fig.AddRow("stopped and started", "same context, same log", fmt.Sprintf("summary version %d", summary.SummaryVersion))
		for _, qa := range [][2]string{
			{"What is my name?", "Ada Lovelace"}, {"What is my favorite instrument?", "harpsichord"}, {"What is 19 * 23?", "437"},
		} {
			got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: qa[0]})
			compare.Contains(t, qa[0]+": want in it", qa[1], got.Answer.Content)
			fig.AddRow("it goes on: "+qa[0], fmt.Sprintf("%q", got.Answer.Content))
		}
		all := apptest.ListMessages(t, h.Client, id) // gapless
		contextOf(t, h.Client, id)
		fig.AddRow("messages then", len(all), "seq without a gap")
		fig.Log(t)
	})
}

// talk has a conversation of 16 messages, 40 in the long form. Each stream is checked by say.
func talk(t *testing.T, c *client.Client, id core.SessionID, fig *apptest.Table) {
	t.Helper()
	messages, deltas, durable, worst := apptest.ChooseSize(16, 40), 0, 0, 0.0
	for i := range messages {
		got := apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: remark(i), Source: core.SourceWeb})
		deltas += got.Deltas
		if got.Streamed == 0 {
			t.Errorf("message %d: got no answer as deltas, want it word by word", i)
		}
		for _, e := range got.Events {
			if e.Seq > 0 {
				durable++
			}
		}
		compare.Equal(t, fmt.Sprintf("message %d: in the log: want it verbatim", i), remark(i), got.Question.Content)
		if len(got.Messages) == 2 { // one model call
			worst = max(worst, miscount(t, c, got.Run.ID))
		}
	}
	fig.AddRow("messages streamed", messages, fmt.Sprintf("%d deltas, %d durable events; every stream whole", deltas, durable))
	fig.AddRow("prompt as planned and as the model counted it", fmt.Sprintf("at most %.1f %% apart", 100*worst))
}

// miscount returns how far the planned size of a run's only prompt was from what
// the model counted.
func miscount(t *testing.T, c *client.Client, id core.RunID) float64 {
	t.Helper()
	run := must.Get(client.Call(t.Context(), c, ops.GetRun, ops.InRun{RunID: id}))(t)
	report := reported(t, c, id)
	off := float64(report.Used-run.Usage.InputTokens) / float64(run.Usage.InputTokens)
	return max(off, -off)
}

// remark is the i-th thing that the user says: facts first, then long remarks,
// now and then something to calculate.
func remark(i int) string {
	switch {
	case i == 0:
		return "My name is Ada Lovelace. I build an engine that weaves algebraic patterns."
	case i == 1:
		return "My favorite instrument is the harpsichord."
	case i%10 == 5:
		return fmt.Sprintf("What is %d * 41?", i)
	default:
		return fmt.Sprintf("Report %d from the workshop. ", i) + strings.Repeat(fmt.Sprintf(
			"The gear of column %d turned %d times before the carriage jammed, so the mechanic oiled it and wrote the reading down. ", i, 100+7*i), apptest.ChooseSize(14, 6))
	}
}

// lastSummary says what the newest summary came to.
func lastSummary(r core.ContextReport) string {
	if len(r.Summaries) == 0 {
		return "none"
	}
	s := r.Summaries[0]
	return fmt.Sprintf("the last: %d messages → %d tokens (%s, %s)", s.MessagesCovered, s.TokenCount, s.Strategy, s.Trigger)
}
