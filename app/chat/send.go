package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
)

// acceptTime bounds the transaction that accepts a message. It is not broken off
// when the caller goes away, so that it never remains unknown what came of it.
const acceptTime = 15 * time.Second

// Send takes a user's message in. When it returns without error the message is
// committed and will be answered, whatever becomes of the caller: the run has
// started, or is queued behind the session's others. A client_message_id that the
// session knows gives the run of the first time.
//
// Multitask says what happens while a run is active: enqueue (also when empty)
// waits, reject is ErrConflict, interrupt cancels the active run, whose answer so
// far is kept. Messages that were queued before still come first. A run that waits
// for a person's decision is not waited for when it is empty: it ends, its tool call
// not approved, and the message is answered.
//
// A message that edits another one stands beside it on a branch of its own, which
// becomes the current path; the old one stays. It cannot wait behind others: while
// there is a run it is ErrConflict, unless it interrupts the only one.
//
// The content is stored as it is, but that invalid UTF-8 and U+0000 become
// U+FFFD, which metadata.replaced_characters counts.
//
// Errors: ErrTooLarge for the content, ErrInvalid for what else is wrong with the
// message, ErrUnprocessable when the session's agent or model cannot be used,
// ErrConflict also for an archived session, ErrRateLimited when too many messages
// wait and when the day's spend limit is reached, ErrNotFound, ErrForbidden.
func (s *Service) Send(ctx context.Context, scope core.Scope, m core.SendMessage) (core.Accepted, error) {
	in, err := s.checkMessage(scope, m)
	if err != nil {
		return core.Accepted{}, err
	}
	if in.Input.Parts, err = s.attach(ctx, scope, m); err != nil {
		return core.Accepted{}, err
	}
	in.Input.TokenCount = s.counter.Message(core.Message{Role: core.RoleUser, Content: in.Input.Content, Parts: in.Input.Parts})
	return s.begin(ctx, scope, in)
}

// begin accepts a run for the session's agent.
func (s *Service) begin(ctx context.Context, scope core.Scope, in core.AcceptRun) (core.Accepted, error) {
	session, err := s.sessions.Get(ctx, scope, in.SessionID)
	if err != nil {
		return core.Accepted{}, err
	}
	agent, err := s.sessionAgent(session, in.Model)
	if err != nil {
		return core.Accepted{}, err
	}
	in.Agent, in.AgentVersion = agent.Name, agent.Version
	ctx = context.WithoutCancel(ctx)
	accepted, err := s.accept(ctx, scope, in)
	if err != nil {
		return core.Accepted{}, err
	}
	if in.Multitask == core.MultitaskInterrupt && !accepted.Repeated {
		s.interrupt(ctx, scope, accepted.Run)
	}
	return accepted, nil
}

// accept commits the message and lets its run begin if it is its turn.
func (s *Service) accept(ctx context.Context, scope core.Scope, in core.AcceptRun) (core.Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	if s.budget != nil {
		in.Refuse = s.budget.Check(ctx, scope.Owner)
	}
	accepted, err := s.runs.Accept(ctx, scope, in)
	if err != nil {
		return core.Accepted{}, err
	}
	if accepted.Repeated {
		return accepted, nil
	}
	if len(accepted.Events) > 0 {
		s.firsts.put(accepted.Run.ID, accepted.Events[0].Seq)
	}
	if s.observer != nil {
		s.observer.Accepted(ctx, accepted.Run)
	}
	s.feed.Publish(ctx, accepted.Events)
	if accepted.Run.Status == core.RunRunning {
		s.work.Start(accepted.Run)
	}
	if accepted.Instead {
		s.resume(ctx, accepted.Run.SessionID)
	}
	return accepted, nil
}

// interrupt cancels the run that is active before the new one. The new one is
// committed already: an interrupt that fails delays it and loses nothing.
func (s *Service) interrupt(ctx context.Context, scope core.Scope, next core.Run) {
	active, err := s.runs.Active(ctx, scope, next.SessionID)
	if errors.Is(err, core.ErrNotFound) {
		return
	}
	if err == nil && active.QueueSeq < next.QueueSeq {
		_, err = s.cancel(ctx, scope, active.ID)
	}
	if err != nil {
		s.log.WarnContext(ctx, "active run not interrupted", "session_id", next.SessionID, "run_id", next.ID, "err", err)
	}
}

// checkMessage returns the message as it is to be accepted, without its agent.
func (s *Service) checkMessage(scope core.Scope, m core.SendMessage) (core.AcceptRun, error) {
	user, err := userOf(scope, m.User)
	if err != nil {
		return core.AcceptRun{}, err
	}
	content, err := s.bounded("message", m.Content)
	if err != nil {
		return core.AcceptRun{}, err
	}
	var f faults
	if strings.TrimSpace(content) == "" && len(m.Parts) == 0 {
		f.Add("content", "is empty")
	}
	multitask := f.multitask(m.Multitask, m.Edits != "")
	f.name("client_message_id", m.ClientMessageID, s.limits.Name)
	f.name("user_id", user, s.limits.Name)
	f.Metadata(m.Metadata, s.limits.Metadata)
	author := f.Text("author", m.Author, s.limits.Name)
	s.checkModel(&f, m.Model)
	f.webhook(m.Webhook, s.private)
	if err := f.Err(); err != nil {
		return core.AcceptRun{}, err
	}
	metadata, err := noteReplaced(m.Metadata, replaced(m.Content, content))
	if err != nil {
		return core.AcceptRun{}, err
	}
	return core.AcceptRun{
		SessionID: m.SessionID, User: user, Model: m.Model, ClientMessageID: m.ClientMessageID,
		Multitask: multitask, Worker: s.worker, MaxQueued: s.limits.Queued, MaxOwned: s.limits.Owned, MaxOfUser: s.ofUser(scope), Webhook: m.Webhook,
		Input: core.RunInput{
			Content: content, Source: cmp.Or(m.Source, core.SourceAPI), Author: author, Metadata: metadata, Edits: m.Edits,
		},
	}, nil
}

// bounded returns a text as it is stored; ErrTooLarge for one that is longer than a
// message may be.
func (s *Service) bounded(what, text string) (string, error) {
	clean := core.CleanText(text)
	if size := max(len(text), len(clean)); size > s.limits.Message {
		return "", core.Errorf(core.ErrTooLarge,
			"the %s has %d bytes, at most %d are allowed: shorten it or send it in parts", what, size, s.limits.Message)
	}
	return clean, nil
}

// replaced counts the characters that cleaning put in.
func replaced(before, after string) int {
	return strings.Count(after, "\uFFFD") - strings.Count(before, "\uFFFD")
}

// noteReplaced adds to the metadata how many characters were replaced, if any.
func noteReplaced(metadata json.RawMessage, n int) (json.RawMessage, error) {
	if n == 0 {
		return metadata, nil
	}
	object := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &object); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	object["replaced_characters"] = json.RawMessage(fmt.Sprint(n))
	return json.Marshal(object)
}

// sessionAgent returns the session's agent, whose model can be used.
func (s *Service) sessionAgent(session core.Session, model string) (core.Agent, error) {
	agent, err := s.agents.Get(session.Agent)
	if err != nil {
		return core.Agent{}, core.Errorf(core.ErrUnprocessable,
			"the session's agent %q is not configured any more; give the session one of %s", session.Agent, s.agentNames())
	}
	if _, err := s.models.Get(cmp.Or(model, session.Model, agent.Model)); err != nil {
		return core.Agent{}, &core.Error{Kind: core.ErrUnprocessable, Err: err,
			Message: "the session's model cannot be used: " + shown(err)}
	}
	return agent, nil
}
