package runs

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// openCall is what the model reads as the result of an interrupted call.
const openCall = "error: the call was interrupted; whether it took effect is not known"

// previewBytes is how much of a result its event shows.
const previewBytes = 200

// readOwnMessages reads the run's own messages, and retries until ctx ends.
func (s *Runner) readOwnMessages(ctx context.Context, run core.Run) ([]core.Message, error) {
	var own []core.Message
	err := s.Journal.callWithRetry(ctx, "read run", func(ctx context.Context) error {
		all, err := s.Messages.GetMessagesAfter(ctx, run.Tenant(), run.SessionID, run.UserMessageID)
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

// buildEndWrite returns the write that ends a run which the engine did not end: results for its
// open tool calls, and the fate of its draft. After a cancel the draft is kept as a partial
// message; after a failure it is retracted.
func (s *Runner) buildEndWrite(x *activeRun, own []core.Message, asked []core.Approval, end core.RunEnd) core.RunWrite {
	run := x.run
	w := core.RunWrite{RunID: run.ID, SessionID: run.SessionID, Attempt: run.Attempt, End: &end}
	s.closeCalls(&w, run, openCalls(own), asked)
	for _, m := range own {
		if m.Role == core.RoleAssistant {
			end.AnswerID = m.ID
		}
	}
	d := s.Journal.feed.Draft(run)
	if !x.retracted { // the engine did not run
		d = core.DecodeDraft(run.Partial)
		for _, id := range lostDrafts(run, "", own) {
			if id != d.MessageID {
				w.Events = append(w.Events, discardedEvent(run, id, reasonInterrupted))
			}
		}
	}
	if d.MessageID == "" || containsMessage(own, d.MessageID) {
		return w
	}
	text, _ := llm.CutThoughts(core.CleanText(d.Text))
	if end.Status != core.RunCanceled || strings.TrimSpace(text) == "" {
		w.Events = append(w.Events, discardedEvent(run, d.MessageID, string(end.Status)))
		return w
	}
	end.AnswerID = d.MessageID
	m := s.newMessage(run, core.RoleAssistant, text)
	m.ID, m.Status, m.Model = d.MessageID, core.MessagePartial, run.Model // the id is that of the deltas
	m.TokenCount = s.Counter.Message(m)
	w.Messages = append(w.Messages, m)
	return w
}

// maxLost bounds how many lost attempts have their texts retracted again: one of them may have
// died before it could do so for earlier ones.
const maxLost = 16

// lostDrafts returns the messages of which earlier attempts may have shown a part: the saved
// one, and those that they would have written next, given the run's own messages as they are
// now.
func lostDrafts(run core.Run, saved core.MessageID, own []core.Message) []core.MessageID {
	var ids []core.MessageID
	for attempt := max(1, run.Attempt-maxLost); attempt < run.Attempt && !run.Resumed; attempt++ {
		ids = append(ids, run.DraftID(attempt, len(own)))
	}
	if saved != "" && !slices.Contains(ids, saved) {
		ids = append(ids, saved)
	}
	return slices.DeleteFunc(ids, func(id core.MessageID) bool { return containsMessage(own, id) })
}

// closeCalls adds results for the tool calls that have none: providers refuse a prompt with an
// open call. A call that was not approved has never begun.
func (s *Runner) closeCalls(w *core.RunWrite, run core.Run, open []core.ToolCall, asked []core.Approval) {
	for _, c := range open {
		m := s.newMessage(run, core.RoleTool, openCall)
		m.ID, m.Status = core.NewID[core.MessageID](), core.MessageFailed
		switch a, found := core.ApprovalOf(asked, open, c); {
		case !found || a.Status == core.ApprovalApproved:
		case a.Status == core.ApprovalAnswered:
			m.Content = a.Result
			if !a.Failed {
				m.Status = core.MessageComplete
			}
		default:
			m.Content = a.Refusal()
		}
		m.ToolCallID, m.ToolName = c.ID, c.Name
		m.TokenCount = s.Counter.Message(m)
		w.Messages = append(w.Messages, m)
		w.Events = append(w.Events, core.NewEvent(run.SessionID, run.ID, core.EventToolFinished,
			core.ToolFinishedData{ToolCallID: c.ID, Status: m.Status, Preview: core.Clip(m.Content, previewBytes)}))
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

// newMessage returns a message of the run without id, status and token count.
func (s *Runner) newMessage(run core.Run, role core.Role, content string) core.Message {
	return core.Message{
		SessionID: run.SessionID, Owner: run.Owner, OnPath: true, Role: role, Content: content,
		Source: run.Input.Source, RunID: run.ID, CreatedAt: core.Now(),
	}
}

// reasonInterrupted is why the text of an attempt is retracted that died before it finished it.
const reasonInterrupted = "interrupted"

// discardedEvent returns the event that retracts the text of a message.
func discardedEvent(run core.Run, id core.MessageID, reason string) core.Event {
	return core.NewEvent(run.SessionID, run.ID, core.EventMessageDiscarded,
		core.DiscardedData{MessageID: id, Reason: reason})
}

func containsMessage(messages []core.Message, id core.MessageID) bool {
	for _, m := range messages {
		if m.ID == id {
			return true
		}
	}
	return false
}
