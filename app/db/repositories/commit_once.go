package repositories

import (
	"cmp"
	"context"
	"errors"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/models"
)

// resultRecorder records the result of a request in the transaction that commits it. The
// caller finds the result by its name; empty if it needs none.
type resultRecorder func(tx *gorm.DB, name string) error

// ignoreResult is the resultRecorder of requests without a key.
func ignoreResult(*gorm.DB, string) error { return nil }

// commitOnce runs do, which commits the effect of a request and calls note in the same
// transaction. If the request of ctx has an idempotency key, note writes into the key's
// row, so that the effect and the fact that it happened are committed together.
//
// A request commits one result. If it makes several calls, the last result counts, so only
// the call that completes the request may use commitOnce.
//
// If an earlier execution of the request has committed its result, do is not called, but again with the
// name that it recorded, which reads the result. A request that does not hold its
// key takes it with the commit; if another one has it, do is rolled back.
func commitOnce(ctx context.Context, do func(note resultRecorder) error, again func(name string) error) error {
	work, keyed := core.KeyedWorkFrom(ctx)
	if !keyed {
		return do(ignoreResult)
	}
	name, repeated, err := core.CommittedResult(ctx)
	if err == nil && repeated {
		return again(name)
	}
	hash := ""
	if err == nil {
		hash, err = work.BodyHash() // before the transaction, as the body may arrive slowly
	}
	if err != nil {
		return err
	}
	err = do(func(tx *gorm.DB, result string) error {
		in := work.Request
		if in.Token == "" {
			in.Token = core.NewID[string]()
			known, err := NewIdempotencyKeys(tx).Begin(ctx, in)
			switch {
			case err != nil:
				return err
			case known == nil:
			case known.Status == 0 && known.Result == nil:
				return core.KeyInProgress()
			case known.Target == in.Target && known.Result != nil && known.Result.RequestHash == hash:
				name = known.Result.Name
				return errRepeated
			default:
				return core.KeyReused(known.Target)
			}
		}
		res := tx.Model(&models.IdempotencyKey{}).Where(keyInProgress(in)).UpdateColumns(map[string]any{"result": cmp.Or(result, emptyName), "result_hash": hash})
		if res.Error == nil && res.RowsAffected == 0 { // another execution has taken over the key: this one must not commit
			return core.KeyInProgress()
		}
		if res.Error != nil {
			return res.Error
		}
		return storeMentions(tx, in, mentionsOf(in.Target, core.KeyedAnswer{Location: result}))
	})
	if errors.Is(err, errRepeated) {
		return again(name)
	}
	return err
}

// errRepeated rolls a transaction back whose effect is committed already.
var errRepeated = errors.New("the request was executed before")

// commitRowOnce is commitOnce for a plain transaction. Do returns the name of the result.
func commitRowOnce(ctx context.Context, db *gorm.DB, do func(tx *gorm.DB) (name string, err error), again func(name string) error) error {
	return commitOnce(ctx, func(note resultRecorder) error {
		return inTx(ctx, db, func(tx *gorm.DB) error {
			name, err := do(tx)
			if err != nil {
				return err
			}
			return note(tx, name)
		})
	}, again)
}

// nothingToRead is again for results that callers do not get.
func nothingToRead(string) error { return nil }

// emptyName stands for the name of a result without one: an empty column means no result.
const emptyName = "-"
