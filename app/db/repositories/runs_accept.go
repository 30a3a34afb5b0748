package repositories

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
	"bobbin/app/db/commit"
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
// changes nothing. Errors besides ErrNotFound: those of conversation.Admit, and
// ErrUnprocessable for a message that cannot be edited or answered.
func (r *Runs) Accept(ctx context.Context, tenant core.Tenant, in core.AcceptRun) (core.Accepted, error) {
	limits := &runLimits{in: in, owner: tenant.Owner, commits: commit.Of(r.db)}
	defer limits.count(-1)
	q := factsQuery{session: string(in.SessionID), owner: tenant.Owner, clientMessageID: in.ClientMessageID, user: limitedUser(in)}
	var out core.Accepted
	accept := func(stx *sessionTx) (err error) {
		out, err = stx.acceptOnce(in, q, limits)
		return err
	}
	err := shareLog(r.db.WithContext(ctx), in.SessionID, func(db *gorm.DB) *gorm.DB { //nolint:contextcheck // the handle has it
		limits.count(1)
		facts, args := q.columns(db)
		return db.Select(namedColumns(db, &models.Session{}, "sessions", "")+", "+facts, args...)
	}, accept, visibleTo(tenant))
	for errors.Is(err, errUncertain) {
		if err = limits.wait(ctx); err == nil {
			err = changeLog(ctx, r.db, in.SessionID, accept, visibleTo(tenant))
		}
	}
	if err != nil {
		return core.Accepted{}, wrapError(err, "session", in.SessionID)
	}
	return out, nil
}

// acceptOnce is Accept in a transaction, or as a change.
func (stx *sessionTx) acceptOnce(in core.AcceptRun, q factsQuery, limits *runLimits) (core.Accepted, error) {
	f, err := stx.countedFacts(q, limits)
	if err != nil {
		return core.Accepted{}, err
	}
	if f.RepeatID != "" {
		return stx.repeatAccepted(f.RepeatID)
	}
	s := conversation.State{Session: stx.session.Core(), LastQueue: stx.session.LastQueueSeq, Counts: f.Counts, Now: f.Now.Time}
	if err := conversation.Admit(s, in); err != nil {
		return core.Accepted{}, err
	}
	in, err = stx.resolveBranch(in)
	if err != nil {
		return core.Accepted{}, err
	}
	if f.WaitID != "" || len(in.Results.Results) > 0 {
		if err := stx.loadCalls(&s, in.Results.Results, f.WaitID); err != nil {
			return core.Accepted{}, err
		}
	}
	if in.Input.Regenerate {
		if s.Question, err = stx.findInLog(in.Answers); err != nil {
			return core.Accepted{}, err
		}
	}
	c, err := conversation.Accept(s, in)
	if err != nil {
		return core.Accepted{}, err
	}
	if err := stx.storeChange(c); err != nil {
		return core.Accepted{}, err
	}
	run, row := *c.Accepted, models.RunFrom(*c.Accepted)
	starts := run.Status == core.RunRunning
	if starts {
		row.Input = models.EncodeJSON(run.Input.Emptied()) // the message enters the log now
	}
	if err := stx.change.Insert(&row); err != nil {
		return core.Accepted{}, wrapError(err, "run", run.ID)
	}
	if err := stx.linkBlobs(run.UserMessage()); err != nil {
		return core.Accepted{}, err
	}
	stx.session.LastQueueSeq = run.QueueSeq
	stx.setUpdatedAt()
	out := core.Accepted{Run: run, Message: c.Message, Instead: c.Instead}
	if starts {
		var err error
		if out.Message, err = stx.enterLog(run, f, s.Question); err != nil {
			return core.Accepted{}, err
		}
		out.Session = stx.sessionWithRun(run)
	}
	out.Events = stx.events
	return out, nil
}

// sessionFacts is the state of a session that decides whether a run starts or is queued.
type sessionFacts struct {
	conversation.Counts `gorm:"embedded"`

	RunID    models.Ref // the active run, otherwise the oldest queued one
	WaitID   models.Ref // the run that waits for a decision
	RepeatID models.Ref // the run with the given client_message_id
	ParentID models.Ref // the last message on the path
	Now      clockTime  // by the database
}

const factsSQL = `(SELECT COUNT(*) FROM runs WHERE session_id = @s AND status = 'queued') AS queued,
	(SELECT COUNT(*) FROM runs WHERE session_id = @s AND status IN ('running', 'waiting')) AS active,
	(SELECT COUNT(*) FROM runs WHERE owner = @o AND status IN ('queued', 'running')) AS owned,
	(SELECT COUNT(*) FROM runs WHERE owner = @o AND status IN ('queued', 'running') AND user_id = @u AND @u <> '') AS of_user,
	COALESCE((SELECT id FROM runs WHERE session_id = @s AND status IN ('running', 'waiting')),
		(SELECT id FROM runs WHERE session_id = @s AND status = 'queued' ORDER BY queue_seq LIMIT 1)) AS run_id,
	(SELECT id FROM runs WHERE session_id = @s AND status IN ('running', 'waiting') AND status = 'waiting') AS wait_id,
	(SELECT id FROM runs WHERE session_id = @s AND client_message_id = @c) AS repeat_id,
	(SELECT COUNT(*) FROM messages WHERE session_id = @s AND client_message_id = @c AND run_id IS NULL) AS taken,
	(SELECT id FROM messages WHERE session_id = @s AND on_path ORDER BY seq DESC LIMIT 1) AS parent_id,
	%s AS now`

// loadFacts reads the state of the session in one statement.
func (stx *sessionTx) loadFacts() (sessionFacts, error) {
	return stx.queryFacts(factsQuery{session: stx.session.ID, owner: stx.session.Owner})
}

// queryFacts executes the query for the session, unless the facts were loaded with it.
func (stx *sessionTx) queryFacts(q factsQuery) (f sessionFacts, err error) {
	if stx.loaded != nil {
		return stx.loaded.Facts, nil
	}
	columns, args := q.columns(stx.tx)
	err = stx.tx.Raw("SELECT "+columns, args...).Find(&f).Error
	return f, err
}

// factsQuery asks for the facts of a session.
type factsQuery struct {
	session, owner  string
	clientMessageID string // empty = it matches nothing
	user            string // empty = no runs of users are counted
}

// columns are the facts in SQL.
func (q factsQuery) columns(db *gorm.DB) (string, []any) {
	return fmt.Sprintf(factsSQL, clockSQL(db, 0)), []any{
		sql.Named("s", q.session), sql.Named("o", q.owner), sql.Named("c", models.Ref(q.clientMessageID)), sql.Named("u", q.user),
	}
}

// enterLog selects the branch of a run that has started, and appends its message to the log,
// unless it is already there.
func (stx *sessionTx) enterLog(run core.Run, f sessionFacts, inLog *core.Message) (core.Message, error) {
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
	run, err := findRun(stx.tx, stx.tx.Where("id = ?", id))
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
	err := byID(stx.tx.Statement.Context, stx.tx, "message", id).Where("id = ?", id).Limit(1).Find(&rows).Error
	if err != nil || len(rows) == 0 || rows[0].SessionID != stx.session.ID {
		return nil, err
	}
	m, err := rows[0].Core()
	return &m, err
}
