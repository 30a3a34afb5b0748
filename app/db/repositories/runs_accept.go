package repositories

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// Accept commits that a message will be answered: after it the message is never
// lost. The run starts at once, leased to in.Worker, if the session has no other
// run to do before; otherwise, and without a worker, it is queued and its message
// enters the log when it starts (ENGINE, "Accepted").
//
// A run of the session that waits for a decision does so no longer, unless the message
// says what it does meanwhile: it is to end (core.Accepted.Instead).
//
// A client_message_id that the session knows already answers with its run of the
// first time and changes nothing. The errors besides ErrNotFound: ErrConflict for
// an archived session, for multitask "reject" while there is another run, and for
// a client_message_id that belongs to a message without a run; ErrRateLimited for
// a full queue. For a run on a branch of its own (Input.Edits, Answers) it is also
// ErrConflict while there is another run, unless it interrupts the only one, and
// ErrUnprocessable for a message that cannot be edited or answered.
func (r *Runs) Accept(ctx context.Context, scope core.Scope, in core.AcceptRun) (core.Accepted, error) {
	if err := checkAccept(in); err != nil {
		return core.Accepted{}, err
	}
	var out core.Accepted
	err := inTx(ctx, r.db, func(tx *gorm.DB) error {
		j, err := lockSession(tx, in.SessionID, visible(scope))
		if err != nil {
			return err
		}
		f, err := j.facts(in.ClientMessageID, counted(in))
		if err != nil {
			return err
		}
		if f.RepeatID != "" {
			out, err = j.repeated(f.RepeatID)
			return err
		}
		if in.Refuse != nil {
			return in.Refuse
		}
		if err := f.admit(j.session, in); err != nil {
			return err
		}
		if in, err = j.resolve(in); err != nil {
			return err
		}
		out, err = j.accept(f, in)
		return err
	})
	if err != nil {
		return core.Accepted{}, failure(err, "session", in.SessionID)
	}
	return out, nil
}

func checkAccept(in core.AcceptRun) error {
	switch in.Multitask {
	case "", core.MultitaskEnqueue, core.MultitaskReject, core.MultitaskInterrupt:
	default:
		return core.Errorf(core.ErrInvalid, "multitask must be enqueue, reject or interrupt")
	}
	if !storableText(in.ClientMessageID) {
		return core.Errorf(core.ErrInvalid, unstorable)
	}
	return checkMetadata(in.Input.Metadata)
}

// facts are what must be known of a locked session to start or queue a run.
type facts struct {
	Queued   int        // runs
	Active   int        // runs: 0 or 1
	Owned    int        // runs of the session's owner that are queued or at work, in all sessions
	OfUser   int        // of them runs of the user; 0 if nobody asks
	NextID   models.Ref // the oldest queued run
	WaitID   models.Ref // the run that waits for a decision
	RepeatID models.Ref // the run with the client_message_id asked for
	Taken    int        // messages with that client_message_id and without a run
	ParentID models.Ref // the last message on the path
	Now      clockTime  // by the database
}

const factsSQL = `SELECT
	(SELECT COUNT(*) FROM runs WHERE session_id = @s AND status = 'queued') AS queued,
	(SELECT COUNT(*) FROM runs WHERE session_id = @s AND status IN ('running', 'waiting')) AS active,
	(SELECT COUNT(*) FROM runs WHERE owner = @o AND status IN ('queued', 'running')) AS owned,
	(SELECT COUNT(*) FROM runs WHERE owner = @o AND status IN ('queued', 'running') AND user_id = @u AND @u <> '') AS of_user,
	(SELECT id FROM runs WHERE session_id = @s AND status = 'queued' ORDER BY queue_seq LIMIT 1) AS next_id,
	(SELECT id FROM runs WHERE session_id = @s AND status IN ('running', 'waiting') AND status = 'waiting') AS wait_id,
	(SELECT id FROM runs WHERE session_id = @s AND client_message_id = @c) AS repeat_id,
	(SELECT COUNT(*) FROM messages WHERE session_id = @s AND client_message_id = @c AND run_id IS NULL) AS taken,
	(SELECT id FROM messages WHERE session_id = @s AND on_path ORDER BY seq DESC LIMIT 1) AS parent_id,
	%s AS now`

// facts looks at the session in one statement. An empty client message id is
// known to nobody; of an empty user no runs are counted.
func (j *journal) facts(clientMessageID, user string) (facts, error) {
	var f facts
	err := j.tx.Raw(fmt.Sprintf(factsSQL, clockSQL(j.tx, 0)),
		sql.Named("s", j.session.ID), sql.Named("o", j.session.Owner), sql.Named("c", models.Ref(clientMessageID)), sql.Named("u", user)).Scan(&f).Error
	return f, err
}

// counted returns the user whose runs have a limit, empty if they have none.
func counted(in core.AcceptRun) string {
	if in.MaxOfUser <= 0 {
		return ""
	}
	return in.User
}

// leaseUntil is the end of a lease that begins now.
func (f facts) leaseUntil() *time.Time {
	t := f.Now.Add(Lease)
	return &t
}

// admit refuses a run that must not be accepted.
func (f facts) admit(s models.Session, in core.AcceptRun) error {
	busy := f.Active+f.Queued > 0
	switch {
	case s.ArchivedAt != nil:
		return core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", s.ID)
	case f.Taken > 0:
		return core.Errorf(core.ErrConflict, "client_message_id %s belongs to another message of the session", in.ClientMessageID)
	case branches(in) && busy && (in.Multitask != core.MultitaskInterrupt || f.Queued > 0):
		return busyError(s.ID)
	case busy && in.Multitask == core.MultitaskReject:
		return core.Errorf(core.ErrConflict, "session %s is busy with another message", s.ID)
	case busy && in.MaxQueued > 0 && f.Queued >= in.MaxQueued:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeQueueFull, RetryAfter: comeBack,
			Message: fmt.Sprintf("session %s has %d messages waiting; wait for an answer first", s.ID, f.Queued)}
	case in.MaxOfUser > 0 && f.OfUser >= in.MaxOfUser:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeTooManyRuns, RetryAfter: comeBack,
			Message: fmt.Sprintf("%d runs of yours are at work or wait for their turn; wait for answers first (the operator can raise limits.runs_per_user)", f.OfUser)}
	case in.MaxOwned > 0 && f.Owned >= in.MaxOwned:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeTooManyRuns, RetryAfter: comeBack,
			Message: fmt.Sprintf("%d runs of yours are at work or wait for their turn; wait for answers first (the operator can raise limits.runs_per_owner)", f.Owned)}
	}
	return nil
}

// comeBack is when another try may make sense for who has too much waiting.
const comeBack = 5 * time.Second

// accept writes the run, started or queued.
func (j *journal) accept(f facts, in core.AcceptRun) (core.Accepted, error) {
	run := j.newRun(in)
	starts := in.Worker != "" && f.Active+f.Queued == 0
	if starts {
		run.Status, run.Attempt = core.RunRunning, 1
		run.LeaseOwner, run.LeaseUntil = in.Worker, f.leaseUntil()
		run.StartedAt = &run.CreatedAt
	}
	row := models.RunFrom(run)
	if err := insert(j.tx, &row); err != nil {
		return core.Accepted{}, failure(err, "run", run.ID)
	}
	if err := j.refer(run.UserMessage()); err != nil {
		return core.Accepted{}, err
	}
	instead := f.WaitID != "" && in.Multitask == ""
	if instead {
		if err := j.closeOpen(core.RunID(f.WaitID), core.ApprovalInstead); err != nil {
			return core.Accepted{}, err
		}
	}
	j.changes["last_queue_seq"] = j.session.LastQueueSeq
	j.touch()
	message, inLog := run.UserMessage(), (*core.Message)(nil)
	if run.Input.Regenerate {
		var err error
		if inLog, err = j.inLog(run.UserMessageID); err != nil {
			return core.Accepted{}, err
		}
		message = *inLog
	}
	if starts {
		var err error
		if message, err = j.start(run, f, inLog); err != nil {
			return core.Accepted{}, err
		}
	} else {
		j.emit(core.NewEvent(run.SessionID, run.ID, core.EventRunQueued, core.MessageData{Message: message}))
	}
	if err := j.close(); err != nil {
		return core.Accepted{}, err
	}
	return core.Accepted{Run: run, Session: j.session.Core(), Message: message, Events: j.events, Instead: instead}, nil
}

// newRun returns the queued run of an accepted message, next in the queue.
func (j *journal) newRun(in core.AcceptRun) core.Run {
	j.session.LastQueueSeq++
	if in.Multitask == "" {
		in.Multitask = core.MultitaskEnqueue
	}
	return core.Run{
		ID: core.NewID[core.RunID](), SessionID: in.SessionID, Owner: j.session.Owner, User: in.User,
		QueueSeq: j.session.LastQueueSeq, Status: core.RunQueued,
		Agent: in.Agent, AgentVersion: in.AgentVersion, Model: in.Model, Input: in.Input,
		UserMessageID: cmp.Or(in.Answers, core.NewID[core.MessageID]()), ClientMessageID: in.ClientMessageID,
		Multitask: in.Multitask, Webhook: in.Webhook, CreatedAt: core.Now(),
	}
}

// start tells that the run began, makes its branch the current one, and puts its
// message into the log, unless it is there already.
func (j *journal) start(run core.Run, f facts, inLog *core.Message) (core.Message, error) {
	j.emit(core.NewEvent(run.SessionID, run.ID, core.EventRunStarted, core.RunData{Run: run}))
	parent, err := j.branch(run, core.MessageID(f.ParentID))
	if err != nil {
		return core.Message{}, err
	}
	if inLog != nil {
		inLog.OnPath = true
		return *inLog, nil
	}
	stored, err := j.add([]core.Message{run.UserMessage()}, parent, run.ID)
	if err != nil {
		return core.Message{}, err
	}
	return stored[0], nil
}

// repeated answers with the run that the same message got before.
func (j *journal) repeated(id models.Ref) (core.Accepted, error) {
	var row models.Run
	if err := j.tx.Where("id = ?", id).Take(&row).Error; err != nil {
		return core.Accepted{}, err
	}
	run, err := row.Core()
	if err != nil {
		return core.Accepted{}, err
	}
	message := run.UserMessage()
	stored, err := j.inLog(run.UserMessageID)
	if err != nil {
		return core.Accepted{}, err
	}
	if stored != nil {
		message = *stored
	}
	return core.Accepted{Run: run, Session: j.session.Core(), Message: message, Repeated: true}, nil
}

// inLog returns a message of the session, nil if the log does not have it.
func (j *journal) inLog(id core.MessageID) (*core.Message, error) {
	var rows []models.Message
	err := j.tx.Where("id = ?", id).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 || rows[0].SessionID != j.session.ID {
		return nil, err
	}
	m, err := rows[0].Core()
	return &m, err
}
