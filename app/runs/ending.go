package runs

import (
	"context"
	"errors"
	"strings"

	"bobbin/app/core"
)

// openCall is what the model reads as the result of a call that was cut short.
const openCall = "error: the call was interrupted; whether it took effect is not known"

// history reads the run's own messages, and tries again until ctx ends.
func (s *Service) history(ctx context.Context, run core.Run) ([]core.Message, error) {
	var own []core.Message
	err := s.journal.persist(ctx, "read run", func(ctx context.Context) error {
		all, err := s.messages.GetMessagesAfter(ctx, run.Scope(), run.SessionID, run.UserMessageID)
		own = nil
		for _, m := range all {
			if m.RunID == run.ID {
				own = append(own, m)
			}
		}
		return err
	})
	if errors.Is(err, core.ErrNotFound) {
		return nil, nil // the user's message is not in the log: then nothing of the run is
	}
	return own, err
}

// asked reads what was decided of the run's open tool calls, and tries again until
// ctx ends.
func (s *Service) asked(ctx context.Context, run core.Run, own []core.Message) ([]core.Approval, error) {
	if len(openCalls(own)) == 0 {
		return nil, nil
	}
	var all []core.Approval
	err := s.journal.persist(ctx, "read approvals", func(ctx context.Context) (err error) {
		all, err = s.store.Approvals(ctx, run.ID)
		return err
	})
	return all, err
}

// ending returns the write that ends a run which the engine did not end: results
// for its open tool calls, and what becomes of the message on its way. After a
// cancel its text is kept as a partial message; after a failure it is taken back.
func (s *Service) ending(run core.Run, own []core.Message, asked []core.Approval, end core.RunEnd) core.RunWrite {
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, End: &end}
	s.closeCalls(&w, run, openCalls(own), asked)
	for _, m := range own {
		if m.Role == core.RoleAssistant {
			end.AnswerID = m.ID
		}
	}
	d := s.journal.draft(run.ID)
	if !s.journal.cleared(run.ID) { // it was not executed
		for _, id := range lostTexts(run, "", own) {
			if id != d.MessageID {
				w.Events = append(w.Events, discarded(run, id, interrupted))
			}
		}
	}
	if d.MessageID == "" || contains(own, d.MessageID) {
		return w
	}
	if end.Status != core.RunCanceled || strings.TrimSpace(d.Text) == "" {
		w.Events = append(w.Events, discarded(run, d.MessageID, string(end.Status)))
		return w
	}
	end.AnswerID = d.MessageID
	w.Messages = append(w.Messages, s.partialMessage(run, d))
	return w
}

// closeCalls answers the tool calls that have no result: a prompt with an open
// call would be refused by providers (CONTEXT § 3, invariant 4). One that was not
// approved has never begun.
func (s *Service) closeCalls(w *core.RunWrite, run core.Run, open []core.ToolCall, asked []core.Approval) {
	for _, c := range open {
		m := s.message(run, core.RoleTool, openCall)
		if a, found := core.ApprovalOf(asked, open, c); found && a.Status != core.ApprovalApproved {
			m.Content = a.Refusal()
		}
		m.ID, m.Status = core.NewID[core.MessageID](), core.MessageFailed
		m.ToolCallID, m.ToolName = c.ID, c.Name
		m.TokenCount = s.counter.Message(m)
		w.Messages = append(w.Messages, m)
		w.Events = append(w.Events, core.NewEvent(run.SessionID, run.ID, core.EventToolFinished,
			core.ToolFinishedData{ToolCallID: c.ID, Status: m.Status, Preview: m.Content}))
	}
}

// openCalls returns the tool calls without a result, in the model's order.
func openCalls(own []core.Message) []core.ToolCall {
	answered := map[string]bool{}
	for _, m := range own {
		if m.Role == core.RoleTool {
			answered[m.ToolCallID] = true
		}
	}
	var open []core.ToolCall
	for _, m := range own {
		for _, c := range m.ToolCalls {
			if !answered[c.ID] {
				open = append(open, c)
			}
		}
	}
	return open
}

// partialMessage is the text so far of a canceled run. It has the id that its
// deltas had.
func (s *Service) partialMessage(run core.Run, d core.Draft) core.Message {
	m := s.message(run, core.RoleAssistant, core.CleanText(d.Text))
	m.ID, m.Status, m.Model = d.MessageID, core.MessagePartial, run.Model
	m.TokenCount = s.counter.Message(m)
	return m
}

// message returns a message of the run without id, status and token count.
func (s *Service) message(run core.Run, role core.Role, content string) core.Message {
	return core.Message{
		SessionID: run.SessionID, Owner: run.Owner, OnPath: true, Role: role, Content: content,
		Source: run.Input.Source, RunID: run.ID, CreatedAt: core.Now(),
	}
}

// interrupted is why the text of an attempt is taken back that did not live to
// finish it.
const interrupted = "interrupted"

// discarded takes the text of a message back.
func discarded(run core.Run, id core.MessageID, reason string) core.Event {
	return core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded,
		core.DiscardedData{MessageID: id, Reason: reason})
}

func contains(messages []core.Message, id core.MessageID) bool {
	for _, m := range messages {
		if m.ID == id {
			return true
		}
	}
	return false
}
