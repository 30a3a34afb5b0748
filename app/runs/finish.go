package runs

import (
	"context"
	"errors"
	"fmt"
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
	if d.MessageID == "" || slices.ContainsFunc(own, func(m core.Message) bool { return m.ID == d.MessageID }) {
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
	return slices.DeleteFunc(ids, func(id core.MessageID) bool {
		return slices.ContainsFunc(own, func(m core.Message) bool { return m.ID == id })
	})
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

// Why an execution was stopped, besides core.ErrCanceled.
var (
	errLost       = errors.New("the run belongs to another attempt")
	errHandedBack = errors.New("the process stops: the run is handed back")
	errRunTime    = errors.New("the run exceeded its time limit")
	errPanic      = errors.New("panic") // logged with its stack where it was recovered
	errNoEnd      = errors.New("the engine returned before the run had ended")
	errGaveUp     = errors.New("processes died while executing the run, the last one while executing nothing else")
)

// internal is what users see of an internal error.
const internal = "Something went wrong inside the server, and nothing of it is your fault. " +
	"Send the message again; if it happens again, give the operator the id of this run."

// runError returns what users may see of the error that ended a run: a stable code, and a
// sentence that says what to do, with the provider's own words if it refused the request.
// Everything else stays in the log.
func runError(err error) core.RunError {
	var e *core.Error
	shown := errors.As(err, &e)
	if shown && e.Code != "" {
		return core.RunError{Code: e.Code, Message: e.Message}
	}
	if m := llm.AsError(err); m != nil {
		e := modelError(m.Kind)
		if words := m.Words(); words != "" {
			e.Message += fmt.Sprintf(" The provider says: %q", words)
		}
		return e
	}
	for _, k := range []struct {
		kind    error
		code    string
		message string // when the error has none that may be shown
	}{
		{errRunTime, "run_timeout", "The answer exceeded the time limit of a run and was stopped. Ask for less at once, or raise the time limit."},
		{errGaveUp, "gave_up", "The server process ended each time it worked on this answer, so the server does not retry by itself. Regenerate the answer to try once more; if that fails, too, start a new conversation."},
		{core.ErrContextFloor, "context_floor", "The prompt cannot be made to fit the model's context window. Choose a model with a larger window, or shorten the system prompt, the tools or the message."},
		{core.ErrModel, "model_error", "The model failed. Send the message again, or choose another model."},
		{core.ErrTimeout, "timeout", "A time limit passed before the answer was ready. Send the message again."},
		{context.DeadlineExceeded, "timeout", "A time limit passed before the answer was ready. Send the message again."},
		{core.ErrRateLimited, "rate_limited", "Too many requests at once. Wait a moment and send the message again."},
		{core.ErrUnavailable, "unavailable", "A part of the server cannot be reached at the moment. Send the message again later."},
		{core.ErrTooLarge, "too_large", "Something in this conversation is larger than allowed. Shorten the message."},
		{core.ErrNotFound, "not_found", "Something that the answer needs no longer exists. Check the session's agent and model."},
		{core.ErrInvalid, "invalid", "The session's settings are not valid. Check its agent and model."},
		{core.ErrUnprocessable, "unprocessable", "The message could not be processed. Change it and send it again."},
		{core.ErrForbidden, "forbidden", "This is not allowed."},
	} {
		if !errors.Is(err, k.kind) {
			continue
		}
		if shown && errors.Is(e, k.kind) {
			return core.RunError{Code: k.code, Message: e.Message}
		}
		return core.RunError{Code: k.code, Message: k.message}
	}
	return core.RunError{Code: "internal", Message: internal}
}

// modelError returns what users may see of a failed model call.
func modelError(kind llm.ErrorKind) core.RunError {
	message, known := map[llm.ErrorKind]string{
		llm.KindRateLimit:          "The model's provider is limiting requests at the moment. Wait a minute and send the message again.",
		llm.KindAuth:               "The model's provider did not accept the API key. Check the provider's key in the server's configuration.",
		llm.KindTimeout:            "The model did not answer in time. Send the message again, or choose a faster model.",
		llm.KindOverloaded:         "The model's provider is overloaded or unavailable. Send the message again later, or choose another model.",
		llm.KindContextLength:      "The provider refused the prompt as too long, and making it shorter did not help. Choose a model with a larger window, or check the configured context window of this one.",
		llm.KindNotFound:           "The provider does not know this model, or its address is wrong. Choose another model, or check the name and the base_url in the configuration; a base_url usually ends in /v1.",
		llm.KindInvalid:            "The provider did not accept the request. Choose another model, check the model's configuration, or edit the message.",
		llm.KindNetwork:            "The model's provider could not be reached. Check the network and the provider's URL, then send the message again.",
		llm.KindTruncated:          "The model's answer was cut off. Send the message again.",
		llm.KindContentFilter:      "The provider's content filter stopped the answer. Rephrase the message; if the filter also stops answers to other messages, delete or edit the one that it objects to.",
		llm.KindEmpty:              "The model ended its answer without saying anything. Send the message again, or choose another model.",
		llm.KindOutputLimit:        "The model reached max_output_tokens before the first word of its answer: it thought for too long. Raise max_output_tokens, or lower reasoning_effort.",
		llm.KindCompactionRefused:  "The provider did not take back its own summary of the conversation. Send the message again.",
		llm.KindToolChangesRefused: "The provider did not take the changes of the agent's tools. Send the message again.",
	}[kind]
	if !known {
		kind, message = "error", "The model failed. Send the message again, or choose another model."
	}
	return core.RunError{Code: "model_" + string(kind), Message: message}
}
