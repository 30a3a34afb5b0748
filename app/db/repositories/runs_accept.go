package repositories

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	defer limits.count(0)
	q := factsQuery{session: string(in.SessionID), owner: tenant.Owner, clientMessageID: in.ClientMessageID, user: limitedUser(in)}
	var out core.Accepted
	accept := func(stx *sessionTx) (err error) {
		out, err = stx.acceptOnce(in, q, limits)
		return err
	}
	db := r.db.WithContext(ctx)
	err := shareLog(db, in.SessionID, sessionSource{nil, func() *gorm.DB { //nolint:contextcheck // the handle has it
		limits.count(1)
		return commit.Text(db, r.acceptSQL, append(q.values(), tenant.User)...)
	}}, accept, visibleTo(tenant))
	for errors.Is(err, errUncertain) {
		if err = core.Sleep(ctx, time.Millisecond); err == nil { // messages that are being accepted go ahead
			_, err = changeLog(ctx, r.db, in.SessionID, accept, visibleTo(tenant))
		}
	}
	return out, wrapError(err, "session", in.SessionID)
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
		row.Input = run.Input.Emptied() // the message enters the log now
	}
	if err := stx.change.Insert(&row); err != nil {
		return core.Accepted{}, wrapError(err, "run", run.ID)
	}
	if err := stx.linkBlobs(run.UserMessage()); err != nil {
		return core.Accepted{}, err
	}
	stx.session.LastQueueSeq = run.QueueSeq
	addBytes(stx, 1, []core.Run{row.Run})
	stx.setUpdatedAt()
	out := core.Accepted{Run: run, Message: c.Message, Instead: c.Instead}
	if starts {
		var err error
		if out.Message, err = stx.enterLog(run, f, s.Question); err != nil {
			return core.Accepted{}, err
		}
		out.Session, out.Known = stx.sessionWithRun(run), stx.knownAfter(row, out.Message.ID)
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

const factsSQL = `(SELECT COUNT(*) FROM runs WHERE session_id = $1 AND status = 'queued') AS queued,
	(SELECT COUNT(*) FROM runs WHERE session_id = $1 AND status IN ('running', 'waiting')) AS active,
	(SELECT COUNT(*) FROM runs WHERE owner = $2 AND status IN ('queued', 'running')) AS owned,
	(SELECT COUNT(*) FROM runs WHERE owner = $2 AND status IN ('queued', 'running') AND user_id = $4 AND $4 <> '') AS of_user,
	COALESCE((SELECT id FROM runs WHERE session_id = $1 AND status IN ('running', 'waiting')),
		(SELECT id FROM runs WHERE session_id = $1 AND status = 'queued' ORDER BY queue_seq LIMIT 1)) AS run_id,
	(SELECT id FROM runs WHERE session_id = $1 AND status IN ('running', 'waiting') AND status = 'waiting') AS wait_id,
	(SELECT id FROM runs WHERE session_id = $1 AND client_message_id = $3) AS repeat_id,
	(SELECT COUNT(*) FROM messages WHERE session_id = $1 AND client_message_id = $3 AND run_id IS NULL) AS taken,
	(SELECT id FROM messages WHERE session_id = $1 AND on_path ORDER BY seq DESC LIMIT 1) AS parent_id,
	%s AS now`

// loadFacts reads the state of the session in one statement.
func (stx *sessionTx) loadFacts() (sessionFacts, error) {
	return stx.queryFacts(factsQuery{session: string(stx.session.ID), owner: stx.session.Owner})
}

// queryFacts executes the query for the session, unless the facts were loaded with it.
func (stx *sessionTx) queryFacts(q factsQuery) (f sessionFacts, err error) {
	if stx.loaded != nil {
		return stx.loaded.Facts, nil
	}
	err = commit.Text(stx.tx, "SELECT "+factsColumns(stx.tx), q.values()...).Scan(&f).Error
	return f, err
}

// factsQuery asks for the facts of a session.
type factsQuery struct {
	session, owner  string
	clientMessageID string // empty = it matches nothing
	user            string // empty = no runs of users are counted
}

func (q factsQuery) values() []any {
	return []any{q.session, q.owner, models.Ref(q.clientMessageID), q.user}
}

func factsColumns(db *gorm.DB) string { return fmt.Sprintf(factsSQL, clockSQL(db, 0)) }

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
	m, err := findFirst[core.Message](byID(stx.tx.Statement.Context, stx.tx, "message", id).Where("id = ?", id))
	if m != nil && m.SessionID != stx.session.ID {
		m = nil
	}
	return m, err
}

// The limits of an owner's and of a user's runs count the runs of all sessions, while a change knows
// only one. Far from a limit nobody else is asked: each message counts those that this process is
// accepting without a lock, and the margins are room for those of other processes. Near it, a transaction
// counts: on PostgreSQL under a lock for each owner and user, on SQLite transactions run one after the
// other.

// How far below a limit a count is near it.
const (
	ownerMargin = 100
	userMargin  = 4
)

// errUncertain: messages that are being accepted decide whether another one may be.
var errUncertain = errors.New("near a limit of runs")

// runLimits are the limits for a message.
type runLimits struct {
	in      core.AcceptRun
	owner   string
	commits *commit.Commits
	counted int  // 1 while it is accepted without a lock
	near    bool // it is accepted under the lock

	// How many are accepted without a lock, as of a moment before the facts were loaded.
	ofOwner, ofUser int
}

// names are what the messages of the owner and of the user are counted by.
func (l *runLimits) names() (owner, user string) {
	return "runs " + l.owner, "runs " + l.owner + " / " + limitedUser(l.in)
}

// count counts the message as one that is accepted without a lock (1) or is not (0), and how many are.
func (l *runLimits) count(n int) {
	owner, user := l.names()
	more := n - l.counted
	l.ofOwner, l.ofUser, l.counted = l.commits.Count(owner, more), l.commits.Count(user, more), n
}

// isReached reports whether so many runs more than there are would reach a limit.
func (l *runLimits) isReached(f sessionFacts, ofOwner, ofUser int) bool {
	return l.in.MaxOwned > 0 && f.Owned+ofOwner >= l.in.MaxOwned || limitedUser(l.in) != "" && f.OfUser+ofUser >= l.in.MaxOfUser
}

// limitedUser returns the user whose runs are limited; empty if there is no limit.
func limitedUser(in core.AcceptRun) string {
	if in.MaxOfUser <= 0 {
		return ""
	}
	return in.User
}

// countedFacts returns the facts with counts that suffice for the limits.
func (stx *sessionTx) countedFacts(q factsQuery, l *runLimits) (sessionFacts, error) {
	if !l.near {
		if stx.loaded == nil {
			l.count(1)
		}
		f, err := stx.queryFacts(q)
		if err != nil || f.RepeatID != "" || !l.isReached(f, l.ofOwner+ownerMargin, l.ofUser+userMargin) {
			return f, err
		}
		l.near = true
		l.count(0)
		if stx.loaded != nil {
			return f, commit.ErrAlone
		}
	}
	if isPostgres(stx.tx) {
		const lock = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
		owner, user := l.names()
		err := stx.tx.Exec(lock, owner).Error
		if err == nil && limitedUser(l.in) != "" {
			err = stx.tx.Exec(lock, user).Error
		}
		if err != nil {
			return sessionFacts{}, err
		}
	}
	l.count(0)
	f, err := stx.queryFacts(q)
	if err == nil && !l.isReached(f, 0, 0) && l.isReached(f, l.ofOwner, l.ofUser) {
		err = errUncertain
	}
	return f, err
}
