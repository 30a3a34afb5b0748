package conversation

import (
	"cmp"
	"fmt"
	"time"

	"bobbin/app/core"
)

// Counts are numbers that decide whether a message is accepted, and whether its run starts.
type Counts struct {
	Queued int // runs of the session
	Active int // runs of the session: 0 or 1
	Owned  int // queued or active runs of the session's owner, in all sessions
	OfUser int // of these, runs of the user; 0 without a user
	Taken  int // messages with the client_message_id and without a run
}

// Admit returns the error of a message that must not be accepted: ErrConflict for an archived
// session, for multitask "reject" while there is another run, for a client_message_id of a
// message without a run (ErrInvalid if it is an idempotency key), and on a branch of its own while there is another run, unless it
// interrupts the only one; ErrRateLimited for too many runs; ErrStale if the session has another
// agent or model than in.SessionAgent.
func Admit(s State, in core.AcceptRun) error {
	session, busy := s.Session, s.Active+s.Queued > 0
	onBranch := in.Input.Edits != "" || in.After != "" || in.Answers != ""
	limited := func(code, format string, args ...any) error {
		return &core.Error{Kind: core.ErrRateLimited, Code: code, RetryAfter: 5 * time.Second, Message: fmt.Sprintf(format, args...)}
	}
	const tooMany = "you have %d active or queued runs; wait for one to finish (the operator can raise limits.%s)"
	switch {
	case session.ArchivedAt != nil:
		return core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", session.ID)
	case s.Taken > 0 && in.RequestHash != "": // the id is an idempotency key
		return core.KeyReused("a message without a run")
	case s.Taken > 0:
		return core.Errorf(core.ErrConflict, "client_message_id %s belongs to another message of the session", in.ClientMessageID)
	case onBranch && busy && (in.Multitask != core.MultitaskInterrupt || s.Queued > 0):
		return Busy(session.ID)
	case busy && in.Multitask == core.MultitaskReject:
		return core.Errorf(core.ErrConflict, "session %s is busy with another message", session.ID)
	case busy && in.MaxQueued > 0 && s.Queued >= in.MaxQueued:
		return limited(core.CodeQueueFull, "session %s has %d queued messages; wait for an answer first", session.ID, s.Queued)
	case in.MaxOfUser > 0 && s.OfUser >= in.MaxOfUser:
		return limited(core.CodeTooManyRuns, tooMany, s.OfUser, "runs_per_user")
	case in.MaxOwned > 0 && s.Owned >= in.MaxOwned:
		return limited(core.CodeTooManyRuns, tooMany, s.Owned, "runs_per_owner")
	case in.SessionAgent != nil && *in.SessionAgent != core.SessionAgent{Agent: session.Agent, Model: session.Model}:
		return core.Errorf(core.ErrStale, "session %s has another agent or model now", session.ID)
	}
	return nil
}

// Busy returns the error of a session whose runs prevent a change of the path.
func Busy(id core.SessionID) error {
	return core.Errorf(core.ErrConflict, "session %s is busy: cancel its runs or wait for them to end", id)
}

// Accept adds the run of an admitted message, and starts it if the worker can and no other run
// is ahead of it. The run of s is one that waits for a decision: its calls get in.Results, and
// unless in.Multitask is set, it waits no more and will end.
func Accept(s State, in core.AcceptRun) (Change, error) {
	c := changeOf(s)
	if err := c.answer(in.Results); err != nil {
		return c, err
	}
	if c.Instead = s.Run.Status == core.RunWaiting && in.Multitask == ""; c.Instead {
		c.cancel(core.ApprovalInstead)
	}
	c.requeue()
	run := core.Run{
		ID: core.NewID[core.RunID](), SessionID: s.Session.ID, Owner: s.Session.Owner, User: in.User,
		QueueSeq: s.LastQueue + 1, Status: core.RunQueued, FirstEvent: s.Session.LastEventSeq + int64(len(c.Events)) + 1,
		Agent: in.Agent, AgentVersion: in.AgentVersion, Model: in.Model, Input: in.Input,
		UserMessageID: cmp.Or(in.Answers, core.NewID[core.MessageID]()), ClientMessageID: in.ClientMessageID, RequestHash: in.RequestHash,
		Multitask: cmp.Or(in.Multitask, core.MultitaskEnqueue), Options: in.Options, Webhook: in.Webhook, CreatedAt: core.Now(),
	}
	c.Message = run.UserMessage()
	if s.Question != nil {
		c.Message = *s.Question
	}
	if in.Worker != "" && s.Active+s.Queued == 0 {
		run = c.start(run, in.Worker, s.Now)
	} else {
		c.Events = append(c.Events, core.NewEvent(run.SessionID, run.ID, core.EventRunQueued, core.MessageData{Message: c.Message}))
	}
	c.Accepted = &run
	return c, nil
}

// Claim starts the run of s, which is the session's active one or the oldest of its queue.
// ErrNotFound means that there is nothing to start.
func Claim(s State, worker string) (Change, error) {
	c := changeOf(s)
	if s.Run.Status != core.RunQueued {
		return c, NothingToStart(s.Session.ID)
	}
	c.Run = c.start(s.Run, worker, s.Now)
	return c, nil
}

// NothingToStart returns the error of a session without a run that could start.
func NothingToStart(id core.SessionID) error {
	return core.Errorf(core.ErrNotFound, "session %s has no run to start", id)
}

// start leases the next attempt of the run to the worker.
func (c *Change) start(run core.Run, worker string, now time.Time) core.Run {
	if run.StartedAt == nil {
		run.StartedAt = new(core.Now())
	}
	run.Status, run.Attempt, run.LeaseOwner, run.LeaseUntil = core.RunRunning, run.Attempt+1, worker, new(now.Add(core.RunLease))
	c.Events = append(c.Events, runEvent(core.EventRunStarted, run))
	return run
}

// Append returns the messages as they enter the log of the session, each a child of the one
// before, the first a child of parent, and the session with its new numbers and speakers. Missing
// fields of a message come from the session and the run.
func Append(s core.Session, messages []core.Message, parent core.MessageID, run core.RunID) (core.Session, []core.Message) {
	stored := core.WithIDs(messages)
	for i := range stored {
		m := &stored[i]
		m.RunID, m.Status = cmp.Or(m.RunID, run), cmp.Or(m.Status, core.MessageComplete)
		if m.CreatedAt.IsZero() {
			m.CreatedAt = core.Now()
		}
		s.LastSeq++
		s.MessageCount++
		m.SessionID, m.Owner, m.Seq, m.ParentID, m.OnPath = s.ID, s.Owner, s.LastSeq, parent, true
		s.Speakers, m.Named = core.AfterSpeaker(s.Speakers, *m)
		parent = m.ID
	}
	return s, stored
}
