package repositories

import (
	"context"
	"errors"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/commit"
)

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
	entered bool

	// How many are accepted without a lock, as of a moment before the facts were loaded.
	ofOwner, ofUser int
}

// names are what the messages of the owner and of the user are counted by.
func (l *runLimits) names() (owner, user string) {
	return "runs " + l.owner, "runs " + l.owner + " / " + limitedUser(l.in)
}

// enter counts the message as one that is accepted without a lock, until leave.
func (l *runLimits) enter() { l.count(1) }

func (l *runLimits) leave() { l.count(-1) }

func (l *runLimits) count(n int) {
	owner, user := l.names()
	if entered := n > 0; l.entered != entered || n == 0 {
		l.ofOwner, l.ofUser, l.entered = l.commits.Count(owner, n), l.commits.Count(user, n), entered
	}
}

// reached reports whether so many runs more than there are would reach a limit.
func (l *runLimits) reached(f sessionFacts, ofOwner, ofUser int) bool {
	return l.in.MaxOwned > 0 && f.Owned+ofOwner >= l.in.MaxOwned || limitedUser(l.in) != "" && f.OfUser+ofUser >= l.in.MaxOfUser
}

// wait lets messages that are being accepted go ahead.
func (l *runLimits) wait(ctx context.Context) error {
	select {
	case <-time.After(time.Millisecond):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
	if stx.loaded == nil {
		l.leave()
		l.count(0)
	}
	f, err := stx.queryFacts(q)
	if err != nil || f.RepeatID != "" || !l.reached(f, l.ofOwner+ownerMargin, l.ofUser+userMargin) {
		return f, err
	}
	if stx.loaded != nil {
		return f, commit.ErrAlone
	}
	if isPostgres(stx.tx) {
		const lock = "SELECT pg_advisory_xact_lock(hashtextextended(?, 0))"
		owner, user := l.names()
		if err = stx.tx.Exec(lock, owner).Error; err == nil && limitedUser(l.in) != "" {
			err = stx.tx.Exec(lock, user).Error
		}
		if err != nil {
			return f, err
		}
		l.count(0)
		f, err = stx.queryFacts(q)
	}
	if err == nil && !l.reached(f, 0, 0) && l.reached(f, l.ofOwner, l.ofUser) {
		err = errUncertain
	}
	return f, err
}
