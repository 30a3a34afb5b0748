package repositories_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// waits makes a run of a new session request its tool calls, named tool:mode, and wait for
// the decisions.
func (s *store) waits(t *testing.T, session core.SessionID, expiry time.Duration, tools ...string) core.Run {
	t.Helper()
	run := s.accept(t, ask(session, "do it")).Run
	m := answer("")
	wait := &core.RunWait{Expiry: expiry}
	for i, tool := range tools {
		name, mode, _ := strings.Cut(tool, ":")
		call := core.ToolCall{ID: fmt.Sprint("call-", i), Name: name, Arguments: `{"n": "Rosebud"}`}
		m.ToolCalls = append(m.ToolCalls, call)
		wait.Approvals = append(wait.Approvals, core.Approval{ToolCallID: call.ID, Tool: name, Arguments: call.Arguments, Definition: name + "-1", Mode: core.ApprovalMode(mode)})
	}
	w := core.RunWrite{RunID: run.ID, SessionID: session, Attempt: run.Attempt, Messages: []core.Message{m}}
	s.write(t, w)
	w.Messages, w.Wait = nil, wait
	s.write(t, w)
	return s.run(t, run.ID)
}

func (s *store) run(t *testing.T, id core.RunID) core.Run {
	t.Helper()
	return must.Get(s.runs.Get(t.Context(), ann(), id))(t)
}

func (s *store) claim(t *testing.T, session core.SessionID) core.Claimed {
	t.Helper()
	return must.Get(s.runs.Claim(t.Context(), session, worker))(t)
}

// An expired approval is closed by exactly one of several sweeps.
func TestExpireApprovals(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		late, open, never := s.waits(t, s.session(t).ID, time.Hour, "pay:always", "look:first"), s.waits(t, s.session(t).ID, time.Hour, "pay:always"), s.waits(t, s.session(t).ID, 0, "pay:always")
		s.exec(t, "UPDATE approvals SET expires_at = '2000-01-01 00:00:00+00:00' WHERE run_id = ?", late.ID)
		var told atomic.Int32
		race(4, func(int) {
			events, err := s.runs.ExpireApprovals(t.Context(), 10)
			compare.Error(t, "expire", nil, err)
			told.Add(int32(len(events)))
		})
		compare.Equal(t, "questions expired: want each once", 2, told.Load())
		all := must.Get(s.runs.Approvals(t.Context(), late.ID))(t)
		compare.True(t, all[1].Status == core.ApprovalExpired && all[1].Refusal() == "not approved: nobody answered in time", "got %+v", all)
		got := s.run(t, late.ID)
		compare.True(t, got.Suspended() && !got.CancelRequested, "got %+v, want it to go on", got)
		compare.Equal(t, "runs whose time has not come", []any{core.RunWaiting, core.RunWaiting}, []any{s.run(t, open.ID).Status, s.run(t, never.ID).Status})
	})
}

// The runs of a session come with who decided what they asked.
func TestListHasDecisions(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		run := s.waits(t, session, 0, "pay:always", "look:always")
		s.exec(t, "UPDATE approvals SET arguments = ? WHERE id = ?", strings.Repeat("x", core.MaxListedArguments+1), run.Approvals[1].ID)
		must.Get(s.runs.Decide(t.Context(), ann(), run.ID, run.Approvals[0].ID, core.ApprovalDecision{Approve: true, By: "carol"}))(t)
		got := must.Get(s.runs.List(t.Context(), ann(), session, core.PageQuery{}))(t).Items[0].Approvals
		compare.Equal(t, "approvals", 2, len(got))
		compare.Equal(t, "decided", []any{core.ApprovalApproved, "carol", `{"n": "Rosebud"}`}, []any{got[0].Status, got[0].DecidedBy, got[0].Arguments})
		compare.Equal(t, "open", []any{core.ApprovalOpen, "", ""}, []any{got[1].Status, got[1].DecidedBy, got[1].Arguments})
	})
}

// Deleting a message clears the approvals of its tool calls.
func TestDeleteErasesApprovals(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		run := s.waits(t, session, 0, "pay:always", "ask:always", "look:always")
		for i, d := range []core.ApprovalDecision{{Comment: "no Rosebud"}, {Approve: true, Arguments: `{"n": "Rosebud 2"}`}, {Respond: "Rosebud"}} {
			must.Get(s.runs.Decide(t.Context(), ann(), run.ID, run.Approvals[i].ID, d))(t)
		}
		s.finish(t, s.claim(t, session).Run, "done")
		log := s.log(t, session)
		must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), session, log[1].ID))(t)
		n := s.count(t, "SELECT (SELECT COUNT(*) FROM approvals WHERE arguments || edited_arguments || result || comment LIKE '%Rosebud%') + (SELECT COUNT(*) FROM session_events WHERE CAST(data AS text) LIKE '%Rosebud%')")
		compare.True(t, n == 0, "%d rows still have what was deleted", n)
	})
}
