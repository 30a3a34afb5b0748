package repositories

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
)

// Accept commits that a message will be answered: from then on the message is never lost.
// The run starts immediately, leased to in.Worker, if the session has no earlier run to
// finish; otherwise, and without a worker, it is queued, and its message enters the log
// when it starts.
//
// A run of the session that waits for a decision stops waiting, unless in.Multitask is set,
// and will end (core.Accepted.Instead), with in.Results as the results of its calls: for these
// the errors of AnswerCalls apply.
//
// If the session already knows the client_message_id, Accept returns its first run and
// changes nothing. Errors besides ErrNotFound: ErrConflict for an archived session, for
// multitask "reject" while there is another run, and for a client_message_id of a message
// without a run; ErrRateLimited for a full queue. For a run on a branch of its own
// (Input.Edits, After, Answers) it is also ErrConflict while there is another run, unless it
// interrupts the only one, and ErrUnprocessable for a message that cannot be edited or
// answered. It is ErrStale if the session has another agent or model than in.SessionAgent.
func (r *Runs) Accept(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	var out core.Accepted
	locks := locksFor(in)
	err := errNearLimit
	for errors.Is(err, errNearLimit) {
		err = retryCollisions(func() error {
			var facts *sessionFacts
			lock := sessionLock{id: in.SessionID, conds: []condition{visibleTo(tenant)}, with: func(dry *gorm.DB) (all []*gorm.DB) {
				facts, all = earlyFacts(dry, tenant, in, locks)
				return all
			}}
			return changeLogWith(ctx, r.db, lock, func(stx *sessionTx) (err error) {
				stx.later = db.DeferWrites(stx.tx)
				out, err = stx.acceptOnce(in, facts, &locks)
				return err
			})
		})
	}
	if err != nil {
		return core.Accepted{}, wrapError(err, "session", in.SessionID)
	}
	return out, nil
}

// acceptOnce is Accept with the session locked. After errNearLimit the caller repeats it in
// a new transaction with the locks that it has set. The facts are nil if they are to be loaded under
// these locks.
func (stx *sessionTx) acceptOnce(in core.AcceptRun, facts *sessionFacts, locks *runLocks) (core.Accepted, error) {
	if facts == nil {
		var err error
		if facts, err = stx.lockedFacts(in, *locks); err != nil {
			return core.Accepted{}, err
		}
	}
	f := *facts
	if f.RepeatID != "" {
		return stx.repeatAccepted(f.RepeatID)
	}
	if err := f.checkAdmission(stx.session, in); err != nil {
		return core.Accepted{}, err
	}
	if now := (core.SessionAgent{Agent: stx.session.Agent, Model: stx.session.Model}); in.SessionAgent != nil && *in.SessionAgent != now {
		return core.Accepted{}, core.Errorf(core.ErrStale, "session %s has another agent or model now", in.SessionID)
	}
	if needed := f.locksNeeded(in, *locks); isPostgres(stx.tx) && needed != *locks {
		*locks = needed
		return core.Accepted{}, errNearLimit
	}
	in, err := stx.resolveBranch(in)
	if err != nil {
		return core.Accepted{}, err
	}
	return stx.storeAccepted(f, in)
}

// sessionFacts is the state of a locked session that decides whether a run starts or is
// queued.
type sessionFacts struct {
	Queued   int        // runs
	Active   int        // runs: 0 or 1
	Owned    int        // queued or active runs of the session's owner, in all sessions
	OfUser   int        // of these, runs of the user; 0 without a user
	NextID   models.Ref // the oldest queued run
	WaitID   models.Ref // the run that waits for a decision
	RepeatID models.Ref // the run with the given client_message_id
	Taken    int        // messages with that client_message_id and without a run
	ParentID models.Ref // the last message on the path
	Now      clockTime  // by the database

	// Whether the locks of runs_limits.go were free.
	OwnerFree, UserFree bool
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
	%s AS now, %s`

// loadFacts reads the state of the session in one statement.
func (stx *sessionTx) loadFacts() (sessionFacts, error) {
	return stx.queryFacts(factsQuery{locks: noLocksSQL})
}

// queryFacts executes the query for the session.
func (stx *sessionTx) queryFacts(q factsQuery) (f sessionFacts, err error) {
	q.session, q.owner = stx.session.ID, stx.session.Owner
	err = q.find(stx.tx, &f).Error
	return f, err
}

// factsQuery asks for the facts of a session.
type factsQuery struct {
	session, owner  string
	clientMessageID string // empty = it matches nothing
	user            string // empty = no runs of users are counted
	locks           string // of runs_limits.go
}

// find puts the facts into f.
func (q factsQuery) find(db *gorm.DB, f *sessionFacts) *gorm.DB {
	return db.Raw(fmt.Sprintf(factsSQL, clockSQL(db, 0), q.locks),
		sql.Named("s", q.session), sql.Named("o", q.owner), sql.Named("c", models.Ref(q.clientMessageID)), sql.Named("u", q.user)).Find(f)
}

// limitedUser returns the user whose runs are limited; empty if there is no limit.
func limitedUser(in core.AcceptRun) string {
	if in.MaxOfUser <= 0 {
		return ""
	}
	return in.User
}

// leaseUntil is the end of a lease that begins now.
func (f sessionFacts) leaseUntil() *time.Time {
	t := f.Now.Add(core.RunLease)
	return &t
}

// checkAdmission returns the error of a run that must not be accepted.
func (f sessionFacts) checkAdmission(s models.Session, in core.AcceptRun) error {
	busy := f.Active+f.Queued > 0
	switch {
	case s.ArchivedAt != nil:
		return core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", s.ID)
	case f.Taken > 0:
		return core.Errorf(core.ErrConflict, "client_message_id %s belongs to another message of the session", in.ClientMessageID)
	case startsBranch(in) && busy && (in.Multitask != core.MultitaskInterrupt || f.Queued > 0):
		return activeRunsError(s.ID)
	case busy && in.Multitask == core.MultitaskReject:
		return core.Errorf(core.ErrConflict, "session %s is busy with another message", s.ID)
	case busy && in.MaxQueued > 0 && f.Queued >= in.MaxQueued:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeQueueFull, RetryAfter: queueRetryAfter,
			Message: fmt.Sprintf("session %s has %d queued messages; wait for an answer first", s.ID, f.Queued)}
	case in.MaxOfUser > 0 && f.OfUser >= in.MaxOfUser:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeTooManyRuns, RetryAfter: queueRetryAfter,
			Message: fmt.Sprintf("you have %d active or queued runs; wait for one to finish (the operator can raise limits.runs_per_user)", f.OfUser)}
	case in.MaxOwned > 0 && f.Owned >= in.MaxOwned:
		return &core.Error{Kind: core.ErrRateLimited, Code: core.CodeTooManyRuns, RetryAfter: queueRetryAfter,
			Message: fmt.Sprintf("you have %d active or queued runs; wait for one to finish (the operator can raise limits.runs_per_owner)", f.Owned)}
	}
	return nil
}

// queueRetryAfter is when a client with too many queued runs should retry.
const queueRetryAfter = 5 * time.Second

// storeAccepted inserts the run, started or queued.
func (stx *sessionTx) storeAccepted(f sessionFacts, in core.AcceptRun) (core.Accepted, error) {
	run := stx.newRun(in)
	starts := in.Worker != "" && f.Active+f.Queued == 0
	if starts {
		run.Status, run.Attempt = core.RunRunning, 1
		run.LeaseOwner, run.LeaseUntil = in.Worker, f.leaseUntil()
		run.StartedAt = &run.CreatedAt
	}
	if len(in.Results.Results) > 0 {
		if _, err := stx.answerCalls(in.Results); err != nil {
			return core.Accepted{}, err
		}
	}
	instead := f.WaitID != "" && in.Multitask == ""
	if instead {
		if err := stx.closeApprovals(core.RunID(f.WaitID), core.ApprovalInstead); err != nil {
			return core.Accepted{}, err
		}
	}
	run.FirstEvent = stx.session.LastEventSeq + 1
	row := models.RunFrom(run)
	if starts {
		row.Input = models.InputFrom(run.Input.Emptied()) // the message enters the log now
	}
	if err := insertRows(stx.later, &row); err != nil {
		return core.Accepted{}, wrapError(err, "run", run.ID)
	}
	if err := stx.linkBlobs(run.UserMessage()); err != nil {
		return core.Accepted{}, err
	}
	stx.changes["last_queue_seq"] = stx.session.LastQueueSeq
	stx.setUpdatedAt()
	message, inLog := run.UserMessage(), (*core.Message)(nil)
	if run.Input.Regenerate {
		var err error
		if inLog, err = stx.findInLog(run.UserMessageID); err != nil {
			return core.Accepted{}, err
		}
		message = *inLog
	}
	if starts {
		var err error
		if message, err = stx.startRun(run, f, inLog); err != nil {
			return core.Accepted{}, err
		}
	} else {
		stx.emitQueued(run.ID, message)
	}
	if err := stx.saveChanges(); err != nil {
		return core.Accepted{}, err
	}
	out := core.Accepted{Run: run, Message: message, Events: stx.events, Instead: instead}
	if starts {
		out.Session = stx.sessionWithRun(run)
	}
	return out, nil
}

// newRun returns the queued run of an accepted message, next in the queue.
func (stx *sessionTx) newRun(in core.AcceptRun) core.Run {
	stx.session.LastQueueSeq++
	if in.Multitask == "" {
		in.Multitask = core.MultitaskEnqueue
	}
	return core.Run{
		ID: core.NewID[core.RunID](), SessionID: in.SessionID, Owner: stx.session.Owner, User: in.User,
		QueueSeq: stx.session.LastQueueSeq, Status: core.RunQueued,
		Agent: in.Agent, AgentVersion: in.AgentVersion, Model: in.Model, Input: in.Input,
		UserMessageID: cmp.Or(in.Answers, core.NewID[core.MessageID]()), ClientMessageID: in.ClientMessageID, RequestHash: in.RequestHash,
		Multitask: in.Multitask, Options: in.Options, Webhook: in.Webhook, CreatedAt: core.Now(),
	}
}

// startRun emits that the run started, selects its branch, and appends its message to the
// log, unless it is already there.
func (stx *sessionTx) startRun(run core.Run, f sessionFacts, inLog *core.Message) (core.Message, error) {
	stx.emitRun(core.EventRunStarted, run)
	parent, err := stx.selectRunBranch(run, core.MessageID(f.ParentID))
	if err != nil {
		return core.Message{}, err
	}
	if inLog != nil {
		inLog.OnPath = true
		return *inLog, nil
	}
	stored, err := stx.appendMessages([]core.Message{run.UserMessage()}, parent, run.ID)
	if err != nil {
		return core.Message{}, err
	}
	return stored[0], nil
}

// repeatAccepted returns the first run of a repeated message.
func (stx *sessionTx) repeatAccepted(id models.Ref) (core.Accepted, error) {
	run, err := stx.loadRun(core.RunID(id))
	if err != nil {
		return core.Accepted{}, err
	}
	message := run.UserMessage()
	stored, err := stx.findInLog(run.UserMessageID)
	if err != nil {
		return core.Accepted{}, err
	}
	if stored != nil {
		message = *stored
	}
	return core.Accepted{Run: run, Message: message, Repeated: true}, nil
}

// findInLog returns a message of the session, nil if it is not in the log.
func (stx *sessionTx) findInLog(id core.MessageID) (*core.Message, error) {
	var rows []models.Message
	err := stx.tx.Where("id = ?", id).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 || rows[0].SessionID != stx.session.ID {
		return nil, err
	}
	m, err := rows[0].Core()
	return &m, err
}
