package records_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/tests/records"
)

// good returns a session with two runs, the first of which uses a tool, and a summary.
func good() records.Record {
	began := time.Now()
	text := "summary"
	through := core.MessageID("m4")
	runs := []core.Run{
		{ID: "r1", QueueSeq: 1, Status: core.RunSucceeded, UserMessageID: "m1", AnswerID: "m4", Input: core.RunInput{Content: "one"}, StartedAt: &began},
		{ID: "r2", QueueSeq: 2, Status: core.RunSucceeded, UserMessageID: "m5", AnswerID: "m6", Input: core.RunInput{Content: "two"}, StartedAt: &began},
	}
	messages := []core.Message{
		{ID: "m1", RunID: "r1", Role: core.RoleUser, Content: "one"},
		{ID: "m2", RunID: "r1", Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c1"}}},
		{ID: "m3", RunID: "r1", Role: core.RoleTool, ToolCallID: "c1"},
		{ID: "m4", RunID: "r1", Role: core.RoleAssistant, Content: "answer to: one", Status: core.MessageComplete},
		{ID: "m5", RunID: "r2", Role: core.RoleUser, Content: "two"},
		{ID: "m6", RunID: "r2", Role: core.RoleAssistant, Content: "answer to: two", Status: core.MessageComplete},
	}
	r := records.Record{
		Runs: runs, Messages: messages,
		Summaries: []core.Summary{{Version: 1, Content: text, State: core.SummaryActive, ActivatedAt: &began, ThroughSeq: 4, ThroughID: through, MessagesCovered: 4}},
		Session: core.Session{
			ConversationSummary: &text, SummaryThroughID: &through, SummaryThroughSeq: 4, SummaryVersion: 1, SummaryCount: 1, SummarizedCount: 4, LastSummarizedAt: &began,
		},
	}
	return r
}

// number numbers everything, and tells of it in events.
func number(r *records.Record) {
	emit := func(run core.RunID, kind core.EventType, data any) {
		e := core.NewEvent("s", run, kind, data)
		e.Seq = int64(len(r.Events) + 1)
		r.Events = append(r.Events, e)
	}
	for _, run := range r.Runs {
		emit(run.ID, core.EventRunStarted, core.RunData{Run: run})
		emit(run.ID, core.EventRunSucceeded, core.RunData{Run: run})
	}
	for i := range r.Messages {
		r.Messages[i].Seq = int64(i + 1)
		emit(r.Messages[i].RunID, core.EventMessageCreated, core.MessageData{Message: r.Messages[i]})
	}
	r.Session.LastSeq, r.Session.MessageCount, r.Session.LastEventSeq = int64(len(r.Messages)), len(r.Messages), int64(len(r.Events))
}

// ask asks whether the tool may start, and says what was decided.
func ask(decided ...core.ApprovalStatus) func(r *records.Record) {
	return func(r *records.Record) {
		a := core.Approval{ID: "a1", RunID: "r1", ToolCallID: "c1"}
		events := []core.Event{core.NewEvent("s", "r1", core.EventApprovalRequested, core.ApprovalData{Approval: a})}
		for _, a.Status = range decided {
			events = append(events, core.NewEvent("s", "r1", core.EventApprovalDecided, core.ApprovalData{Approval: a}))
		}
		for _, e := range events {
			e.Seq = int64(len(r.Events) + 1)
			r.Events = append(r.Events, e)
		}
		r.Session.LastEventSeq = int64(len(r.Events))
	}
}

// The checks find what must not be, and nothing in a whole session.
func TestWhole(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		before  func(r *records.Record) // the numbers are given
		after   func(r *records.Record)
		want    string // in what is found; empty = nothing is wrong
		lost    int
		doubled int
	}{
		{name: "whole"},
		{name: "an answer twice", before: func(r *records.Record) {
			twice := r.Messages[5]
			twice.ID = "m7"
			r.Messages = append(r.Messages, twice)
		}, want: "out of place", doubled: 1},
		{name: "a question twice", before: func(r *records.Record) {
			twice := r.Messages[4]
			twice.ID = "m7"
			r.Messages = append(r.Messages, twice)
		}, want: "out of place", doubled: 1},
		{name: "a question lost", before: func(r *records.Record) { r.Messages = r.Messages[:4] }, want: "does not begin with its question", lost: 1},
		{name: "an answer lost", before: func(r *records.Record) { r.Messages = r.Messages[:5] }, want: "with 0 answers", lost: 1},
		{name: "a wrong answer", before: func(r *records.Record) { r.Messages[5].Content = "answer to: one" }, want: "its answer m6"},
		{name: "a run failed", before: func(r *records.Record) { r.Runs[1].Status, r.Messages = core.RunFailed, r.Messages[:5] }, want: "failed in attempt"},
		{name: "a result missing", before: func(r *records.Record) { r.Messages = slices.Delete(r.Messages, 2, 3) }, want: "have no result", lost: 1, doubled: 1},
		{name: "runs mixed", before: func(r *records.Record) { r.Messages[3], r.Messages[4] = r.Messages[4], r.Messages[3] }, want: "comes after one of run"},
		{name: "a gap in the log", after: func(r *records.Record) { r.Messages[5].Seq = 9 }, want: "has seq 9"},
		{name: "a gap in the events", after: func(r *records.Record) { r.Events[3].Seq = 99 }, want: "has number 99"},
		{name: "a message not told of", after: func(r *records.Record) { r.Events = r.Events[:len(r.Events)-1] }, want: "message.created came for 5"},
		{name: "a run ended twice", after: func(r *records.Record) { r.Events = append(r.Events, r.Events[1]) }, want: "ended 2 times"},
		{name: "a question of the tool not answered", after: ask(), want: "question a1 is \"\""},
		{name: "a refused call that was made", after: ask(core.ApprovalDenied), want: "question a1 is \"denied\""},
		{name: "a question answered twice", after: ask(core.ApprovalApproved, core.ApprovalDenied), want: "closed again (true)"},
		{name: "a question answered", after: ask(core.ApprovalApproved)},
		{name: "another summary", before: func(r *records.Record) { r.Summaries[0].Content = "other" }, want: "or their texts differ"},
		{name: "a summary lost", before: func(r *records.Record) { r.Summaries = nil }, want: "there is no summary"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := good()
			if tt.before != nil {
				tt.before(&r)
			}
			number(&r)
			if tt.after != nil {
				tt.after(&r)
			}
			var found []string
			c := records.Check{Record: r, Found: &records.Found{}, Errorf: func(format string, args ...any) { found = append(found, fmt.Sprintf(format, args...)) }}
			c.Whole()
			if all := strings.Join(found, "\n"); (all == "") != (tt.want == "") || !strings.Contains(all, tt.want) {
				t.Errorf("got %q, want %q", all, tt.want)
			}
			if c.Found.Lost != tt.lost || c.Found.Doubled != tt.doubled {
				t.Errorf("got %d lost and %d doubled, want %d and %d", c.Found.Lost, c.Found.Doubled, tt.lost, tt.doubled)
			}
		})
	}
}
