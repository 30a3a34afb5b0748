package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// acceptTime bounds the transaction that accepts a message. It is not broken off
// when the caller goes away, so that it never remains unknown what came of it.
const acceptTime = 15 * time.Second

// Send takes a user's message in. When it returns without error the message is
// committed and will be answered, whatever becomes of the caller: the run has
// started, or is queued behind the session's others or until a process has a free slot. A
// client_message_id that the session knows gives the run of the first time.
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
// A message with After stands behind that message, on a branch of its own unless it is the end of
// the path, and with core.AfterStart at the beginning of one; the rest is as for an edit.
// ErrNotFound also for a message that was deleted.
//
// Results of calls that the session's run waits for are recorded before the message, all of them or
// none: that run ends with them, and the model reads them with the message. The errors of
// AnswerCalls apply.
//
// The content is stored as it is, but that invalid UTF-8 and U+0000 become
// U+FFFD, which metadata.replaced_characters counts.
//
// Errors: ErrTooLarge for the content, ErrInvalid for what else is wrong with the
// message, ErrUnprocessable when the session's agent or model cannot be used,
// also when a limit in US dollars holds for the owner and the model has no price,
// ErrConflict also for an archived session, ErrRateLimited when too many messages
// wait and when the day's spend limit is reached, ErrNotFound, ErrForbidden.
func (s *Service) Send(ctx context.Context, tenant core.Tenant, m core.SendMessage) (core.Accepted, error) {
	in, err := s.checkMessage(tenant, m)
	if err != nil {
		return core.Accepted{}, err
	}
	asked := m.Parts
	if asked == nil && m.Edits != "" { // a new version that says nothing of images and files keeps those that it had
		old, err := s.Messages.Get(ctx, tenant, m.SessionID, m.Edits)
		if err != nil {
			return core.Accepted{}, err
		}
		asked = slices.DeleteFunc(slices.Clone(old.Parts), func(p core.Part) bool { return !p.Attached() })
	}
	if len(asked) > 0 {
		if in.Input.Parts, err = s.Files.Attach(ctx, tenant, asked); err != nil {
			return core.Accepted{}, err
		}
	}
	if len(m.Results) > 0 {
		if in.Results, err = s.checkResults(ctx, tenant, core.AnswerCalls{SessionID: m.SessionID, Results: m.Results}); err != nil {
			return core.Accepted{}, err
		}
	}
	in.Input.TokenCount = s.Counter.Message(core.Message{Role: core.RoleUser, Content: in.Input.Content, Parts: in.Input.Parts})
	return s.startRun(ctx, tenant, in)
}

// maxAgentTries is how often a run is accepted again because somebody gives the session another agent.
const maxAgentTries = 5

// startRun accepts a run for the session's agent. It takes the agent from the cache; if the session
// has another one since, it loads the session.
func (s *Service) startRun(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	if err := s.Stored.Admit(ctx, tenant, in.Input.StoredBytes()+in.Options.StoredBytes()); err != nil {
		return core.Accepted{}, err
	}
	key := agentKey{tenant, in.SessionID}
	for try := 1; ; try++ {
		agent, cached := s.agents.Get(key)
		if !cached {
			session, err := s.Sessions.Get(ctx, tenant, in.SessionID)
			if err != nil {
				return core.Accepted{}, err
			}
			agent = core.SessionAgent{Agent: session.Agent, Model: session.Model}
		}
		accepted, err := s.startRunOf(ctx, tenant, in, agent)
		if err == nil {
			s.agents.Set(key, agent)
			return accepted, nil
		}
		// The agent or the model of an outdated entry may not exist any more.
		isOutdated := errors.Is(err, core.ErrStale) || cached && (errors.Is(err, core.ErrUnprocessable) || errors.Is(err, core.ErrInvalid))
		if !isOutdated || try == maxAgentTries {
			return core.Accepted{}, err
		}
		s.agents.Delete(key)
	}
}

// startRunOf is startRun for a session that has the agent.
func (s *Service) startRunOf(ctx context.Context, tenant core.Tenant, in core.AcceptRun, of core.SessionAgent) (core.Accepted, error) {
	in.SessionAgent = &of
	agent, model, err := s.sessionAgent(of, in.Model)
	if err != nil {
		return core.Accepted{}, err
	}
	var ignored []string
	if in.Options != nil {
		options, left, err := s.checkForRun(*in.Options, agent, model)
		if err != nil {
			return core.Accepted{}, err
		}
		in.Options, ignored = &options, left
	}
	in.Agent, in.AgentVersion = agent.Name, agent.Version
	if s.Budget != nil {
		if err := s.Budget(ctx, tenant.Owner, model.Info()); err != nil {
			known, missing := s.FindRepeated(ctx, tenant, in) // a message that repeats an earlier one begins nothing new
			if errors.Is(missing, core.ErrNotFound) {
				return known, err
			}
			return known, missing
		}
	}
	ctx = context.WithoutCancel(ctx)
	accepted, err := s.acceptMessage(ctx, tenant, in)
	if err != nil {
		return core.Accepted{}, err
	}
	accepted.Ignored = ignored
	if in.Multitask == core.MultitaskInterrupt && !accepted.Repeated {
		// The new run is committed already: an interrupt that fails delays it and loses nothing.
		active, err := s.Runs.Active(ctx, tenant, in.SessionID)
		if err == nil && active.QueueSeq < accepted.Run.QueueSeq {
			_, err = s.Cancel(ctx, tenant, active.ID)
		}
		if err != nil && !errors.Is(err, core.ErrNotFound) {
			s.Logger.WarnContext(ctx, "active run not interrupted", "session_id", in.SessionID, "run_id", accepted.Run.ID, "err", err)
		}
	}
	return accepted, nil
}

// FindRepeated returns the run of a message that repeats an earlier one. ErrNotFound if it repeats
// none, core.KeyReused if its key is that of another request.
func (s *Service) FindRepeated(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	if in.ClientMessageID == "" {
		return core.Accepted{}, core.ErrNotFound
	}
	run, err := s.Runs.Repeated(ctx, tenant, in.SessionID, in.ClientMessageID)
	if err != nil {
		return core.Accepted{}, err
	}
	_, ignored, _ := s.optionsFor(*in.SessionAgent, in.Model, in.Options)
	return core.Accepted{Run: run, Repeated: true, Ignored: ignored}, run.CheckRepeated(in.RequestHash)
}

// optionsFor is checkForRun for the agent of a session, with its model or the one that is named.
func (s *Service) optionsFor(of core.SessionAgent, named string, o *core.RunOptions) (*core.RunOptions, []string, error) {
	agent, model, err := s.sessionAgent(of, named)
	if err != nil || o == nil {
		return nil, nil, err
	}
	rest, ignored, err := s.checkForRun(*o, agent, model)
	return &rest, ignored, err
}

// acceptMessage commits the message and lets its run begin if it is its turn and this process has
// a free slot.
func (s *Service) acceptMessage(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	ctx, cancel := context.WithTimeout(ctx, acceptTime)
	defer cancel()
	accepted, err := s.Work.Begin(ctx, func(worker string) (core.Accepted, error) {
		in.Worker = worker
		accepted, err := s.Runs.Accept(ctx, tenant, in)
		switch {
		case err != nil:
		case accepted.Repeated:
			err = accepted.Run.CheckRepeated(in.RequestHash)
		default:
			s.Observer.Accepted(ctx, accepted.Run)
			s.Feed.Publish(ctx, accepted.Events)
		}
		return accepted, err
	})
	if err == nil && accepted.Instead {
		s.Work.Next(ctx, accepted.Run.SessionID)
	}
	return accepted, err
}

// checkMessage returns the message as it is to be accepted, without its agent.
func (s *Service) checkMessage(tenant core.Tenant, m core.SendMessage) (core.AcceptRun, error) {
	user, err := userOf(tenant, m.User)
	if err != nil {
		return core.AcceptRun{}, err
	}
	content, err := s.limitContent("message", m.Content)
	if err != nil {
		return core.AcceptRun{}, err
	}
	var f faults
	if strings.TrimSpace(content) == "" && len(m.Parts) == 0 {
		f.Add("content", "is empty")
	}
	multitask := f.checkMultitask(m.Multitask, m.Edits != "" || m.After != "")
	f.ID("after", string(m.After), maxName)
	if m.Edits != "" && m.After != "" {
		f.Add("after", "cannot be given for an edit: the new version stands beside the old one")
	}
	if len(m.Results) > 0 && (m.Multitask != "" || m.Edits != "" || m.After != "") {
		f.Add("results", "end the run that waits for them: the message comes at the end of the path, without multitask")
	}
	f.ID("client_message_id", m.ClientMessageID, maxName)
	f.ID("user_id", user, maxName)
	f.Metadata(m.Metadata, maxMetadata)
	author := f.Text("author", m.Author, maxName)
	s.checkModel(&f, m.Model)
	f.checkWebhook(m.Webhook, s.PrivateWebhooks)
	options := f.checkOptions(m.Options)
	if err := f.Err(); err != nil {
		return core.AcceptRun{}, err
	}
	metadata := m.Metadata
	if n := strings.Count(content, "\uFFFD") - strings.Count(m.Content, "\uFFFD"); n > 0 {
		if metadata, err = noteReplaced(metadata, n); err != nil {
			return core.AcceptRun{}, err
		}
	}
	return core.AcceptRun{
		SessionID: m.SessionID, User: user, Model: m.Model, ClientMessageID: m.ClientMessageID, RequestHash: m.RequestHash, After: m.After,
		Multitask: multitask, MaxQueued: s.Limits.Queued, MaxOwned: s.Limits.Owned, MaxOfUser: s.ofUser(tenant), Webhook: m.Webhook, Options: options,
		Input: core.RunInput{
			Content: content, Source: cmp.Or(m.Source, core.SourceAPI), Author: author, Metadata: metadata, Edits: m.Edits,
		},
	}, nil
}

// limitContent returns a text as it is stored; ErrTooLarge for one that is longer than a
// message may be.
func (s *Service) limitContent(what, text string) (string, error) {
	clean := core.CleanText(text)
	if size := max(len(text), len(clean)); size > s.Limits.Message {
		return "", core.Errorf(core.ErrTooLarge,
			"the %s has %d bytes, at most %d are allowed: shorten it or send it in parts", what, size, s.Limits.Message)
	}
	return clean, nil
}

// noteReplaced adds to the metadata how many characters were replaced.
func noteReplaced(metadata json.RawMessage, n int) (json.RawMessage, error) {
	object := map[string]json.RawMessage{}
	if len(metadata) > 0 {
		if err := json.Unmarshal(metadata, &object); err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
	}
	object[core.ReplacedKey] = json.RawMessage(fmt.Sprint(n))
	return json.Marshal(object)
}

// sessionAgent returns the session's agent with the model that answers: the one named,
// else the session's, else the agent's.
func (s *Service) sessionAgent(session core.SessionAgent, named string) (core.Agent, llm.Model, error) {
	agent, err := s.Agents.Get(session.Agent)
	if err != nil {
		return core.Agent{}, nil, core.Errorf(core.ErrUnprocessable,
			"the session's agent %q is not configured any more; give the session one of %s", session.Agent, s.agentNames())
	}
	model, err := s.FindModel(cmp.Or(named, session.Model, agent.Model))
	if err != nil {
		return core.Agent{}, nil, &core.Error{Kind: core.ErrUnprocessable, Err: err,
			Message: "the session's model cannot be used: " + core.ShownMessage(err, "internal error")}
	}
	for _, p := range model.Info().LackingFor(agent) {
		if p.Binding() {
			return core.Agent{}, nil, core.Errorf(core.ErrUnprocessable,
				"the model %q cannot be used: the agent %s sets %s, which the model does not take; choose another model", model.Info().Name, agent.Name, p)
		}
	}
	return agent, model, nil
}
