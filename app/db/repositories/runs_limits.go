package repositories

import (
	"errors"

	"gorm.io/gorm"

	"bobbin/app/core"
)

// The limits of an owner's and of a user's runs count the runs of all sessions, while a
// transaction locks only one session. To keep others from being accepted between the count
// and the commit, PostgreSQL has a lock for each owner and user. Far from the limit,
// transactions share the owner's lock; near it, each takes the lock exclusively and then
// counts. The first attempt takes locks only if they are free, within the statement that
// counts, so a normal turn needs no extra statement. SQLite runs its transactions one after
// the other.

// runLocks says which locks a transaction takes exclusively before it counts.
type runLocks struct{ owner, user bool }

// How far below a limit a count needs no exclusive lock: room for runs that are committed
// between the count and the lock in one statement.
const (
	ownerMargin = 100
	userMargin  = 4
)

// errNearLimit: the runs must be counted again under a lock.
var errNearLimit = errors.New("near a limit of runs")

const (
	noLocksSQL = "true AS owner_free, true AS user_free"
	ownerSQL   = "pg_try_advisory_xact_lock_shared(hashtextextended('runs ' || @o, 0)) AS owner_free"
	userSQL    = "pg_try_advisory_xact_lock(hashtextextended('runs ' || @o || ' / ' || @u, 0)) AS user_free"
)

// locksFor returns the locks for the first attempt: that of an owner with a low limit, as
// every count is near it.
func locksFor(in core.AcceptRun) runLocks {
	return runLocks{owner: in.MaxOwned > 0 && in.MaxOwned <= ownerMargin}
}

// earlyFacts returns the query of the facts for accepting a run, and where it puts them; none if
// they are to be counted under locks.
func earlyFacts(dry *gorm.DB, tenant core.Tenant, in core.AcceptRun, locks runLocks) (*sessionFacts, []*gorm.DB) {
	free := noLocksSQL
	if isPostgres(dry) {
		if locks != (runLocks{}) {
			return nil, nil
		}
		free = freeLocksSQL(in, locks)
	}
	var f sessionFacts
	q := factsQuery{session: string(in.SessionID), owner: tenant.Owner, clientMessageID: in.ClientMessageID, user: limitedUser(in), locks: free}
	return &f, []*gorm.DB{q.find(dry, &f)}
}

// lockedFacts loads the facts for accepting a run on PostgreSQL, counted under the locks.
func (stx *sessionTx) lockedFacts(in core.AcceptRun, locks runLocks) (*sessionFacts, error) {
	user := limitedUser(in)
	if locks.owner {
		if err := stx.lockFor("runs " + stx.session.Owner); err != nil {
			return nil, err
		}
	}
	if locks.user {
		if err := stx.lockFor("runs " + stx.session.Owner + " / " + user); err != nil {
			return nil, err
		}
	}
	f, err := stx.queryFacts(factsQuery{clientMessageID: in.ClientMessageID, user: user, locks: freeLocksSQL(in, locks)})
	return &f, err
}

// freeLocksSQL takes the locks that are not yet taken, if they are free.
func freeLocksSQL(in core.AcceptRun, locks runLocks) string {
	owner, ofUser := ownerSQL, userSQL
	if in.MaxOwned <= 0 || locks.owner {
		owner = "true AS owner_free"
	}
	if limitedUser(in) == "" || locks.user {
		ofUser = "true AS user_free"
	}
	return owner + ", " + ofUser
}

// lockFor takes an advisory lock until the transaction ends.
func (stx *sessionTx) lockFor(name string) error {
	return stx.tx.Exec("SELECT pg_advisory_xact_lock(hashtextextended(?, 0))", name).Error
}

// locksNeeded returns the locks that make the counts reliable.
func (f sessionFacts) locksNeeded(in core.AcceptRun, locks runLocks) runLocks {
	if in.MaxOwned > 0 && (!f.OwnerFree || f.Owned+ownerMargin >= in.MaxOwned) {
		locks.owner = true
	}
	if limitedUser(in) != "" && (!f.UserFree || f.OfUser+userMargin >= in.MaxOfUser) {
		locks.user = true
	}
	return locks
}
