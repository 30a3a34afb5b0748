package repositories_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// question is a query of the database.
type question func(ctx context.Context) error

// ask makes a question of one that has an answer.
func asks[T any](q func(ctx context.Context) (T, error)) question {
	return func(ctx context.Context) error {
		_, err := q(ctx)
		return err
	}
}

// fewSessions begins the names of lists with a filter that few sessions of many pass.
const fewSessions = "few sessions: "

// questions are the queries of a running server, by name. Searches have their own
// measurements, and a purge of a user is an operator's long task. Lists by tag or by metadata
// read all sessions of the scope, in a search slot and within core.SearchTime: SQLite has no
// index for them, and those of PostgreSQL would be written at every turn, like all indexes of
// a row whose updated_at is indexed.
func (h *bigHistory) questions(t *testing.T) map[string]question {
	t.Helper()
	all := h.lists()
	for _, some := range []map[string]question{h.filteredLists(), h.details(), h.usage(), h.outside(), h.turns(t), h.sweeps(), h.deletions()} {
		maps.Copy(all, some)
	}
	return all
}

// listSessions reads two pages of a list.
func (h *bigHistory) listSessions(tenant core.Tenant, q core.SessionQuery) question {
	return func(ctx context.Context) error {
		q.Limit = 200
		page, err := h.sessions.List(ctx, tenant, q)
		if err == nil && page.NextCursor != nil {
			q.Cursor = *page.NextCursor
			_, err = h.sessions.List(ctx, tenant, q)
		}
		return err
	}
}

// filteredLists are lists of sessions with a filter that has no index of its own for all sessions.
func (h *bigHistory) filteredLists() map[string]question {
	all := map[string]question{
		"idle sessions":                h.listSessions(ann(), core.SessionQuery{Status: core.SessionIdle, Archived: true}),
		"sessions that are not pinned": h.listSessions(ann(), core.SessionQuery{Pinned: new(false), Archived: true}),
	}
	filters := map[string]core.SessionQuery{"pinned": {Pinned: new(true)}, "in Slack": {Slack: true}}
	for _, status := range []core.SessionStatus{core.SessionRunning, core.SessionWaiting, core.SessionQueued} {
		filters[string(status)] = core.SessionQuery{Status: status}
	}
	for name, q := range filters {
		q.Archived = true
		all[fewSessions+name] = h.listSessions(ann(), q)
		all[fewSessions+name+", of a user"] = h.listSessions(core.Tenant{Owner: "ann", User: "user 7"}, q)
		q.Agent = "assistant"
		all[fewSessions+name+", of an agent"] = h.listSessions(ann(), q)
		q.Agent, q.Order = "", core.OrderByCreation
		all[fewSessions+name+", by creation"] = h.listSessions(ann(), q)
	}
	return all
}

// lists are pages of lists.
func (h *bigHistory) lists() map[string]question {
	list := h.listSessions
	middle := int64(h.n)
	return map[string]question{
		"sessions, 90 % archived":   list(ann(), core.SessionQuery{}),
		"sessions, also archived":   list(ann(), core.SessionQuery{Archived: true}),
		"sessions by creation":      list(ann(), core.SessionQuery{Order: core.OrderByCreation}),
		"sessions by creation, all": list(ann(), core.SessionQuery{Order: core.OrderByCreation, Archived: true}),
		"sessions of an agent":      list(ann(), core.SessionQuery{Agent: "rare"}),
		"sessions of a user":        list(core.Tenant{Owner: "ann", User: "user 7"}, core.SessionQuery{}),
		"messages before": asks(func(ctx context.Context) (core.Page[core.Message], error) {
			return h.messages.List(ctx, ann(), h.long(), core.MessageQuery{Before: middle})
		}),
		"messages after": asks(func(ctx context.Context) (core.Page[core.Message], error) {
			return h.messages.List(ctx, ann(), h.long(), core.MessageQuery{After: middle})
		}),
		"runs": asks(func(ctx context.Context) (core.Page[core.Run], error) {
			return h.runs.List(ctx, ann(), h.long(), core.PageQuery{Limit: 200})
		}),
		"runs that wait": asks(func(ctx context.Context) ([]core.Run, error) { return h.runs.Pending(ctx, ann(), h.long()) }),
		"events":         asks(func(ctx context.Context) ([]core.Event, error) { return h.events.After(ctx, h.long(), middle, 200) }),
	}
}

// details are questions for one thing.
func (h *bigHistory) details() map[string]question {
	run, asked, answered := h.turn(h.n / 2)
	_, last, _ := h.turn(h.n - 10)
	return map[string]question{
		"session": asks(func(ctx context.Context) (core.Session, error) { return h.sessions.Get(ctx, ann(), h.long()) }),
		"usage of session": asks(func(ctx context.Context) (core.UsageTotal, error) {
			return h.modelCalls.SessionTotal(ctx, ann(), h.long())
		}),
		"run": asks(func(ctx context.Context) (core.Run, error) { return h.runs.Get(ctx, ann(), run) }),
		"calls of a run": func(ctx context.Context) error {
			// Not of the long session: all of its calls are of the same minute.
			of, err := h.runs.Get(ctx, ann(), core.RunID(numbered("R", 1)))
			if err == nil {
				_, err = h.modelCalls.OfRun(ctx, of)
			}
			return err
		},
		"active run": func(ctx context.Context) error {
			if _, err := h.runs.Active(ctx, ann(), h.long()); !errors.Is(err, core.ErrNotFound) {
				return err
			}
			return nil
		},
		"message": asks(func(ctx context.Context) (core.Message, error) { return h.messages.Get(ctx, ann(), h.long(), asked) }),
		"tail": asks(func(ctx context.Context) ([]core.Message, error) {
			return h.messages.GetMessagesAfter(ctx, ann(), h.long(), last)
		}),
		"pinned": asks(func(ctx context.Context) ([]core.Message, error) { return h.messages.Pinned(ctx, ann(), h.long()) }),
		"vectors of a session, the second page": asks(func(ctx context.Context) ([]core.MessageVector, error) {
			q := core.MessageVectorQuery{Space: core.VectorSpace{Model: "embed", Dimension: 1}, Limit: 1000, Before: core.MessageID(numbered("M", 10*h.n+100))}
			return repositories.NewMessageVectors(h.Gorm).SessionVectors(ctx, ann(), h.long(), q)
		}),
		"what is to be embedded": asks(func(ctx context.Context) (core.Unembedded, error) {
			return repositories.NewMessageVectors(h.Gorm).Unembedded(ctx, core.VectorSpace{Model: "embed", Dimension: 1}, nil, 64)
		}),
		"newest event": asks(func(ctx context.Context) (int64, error) { return h.events.Last(ctx, ann(), h.long()) }),
		"pin": func(ctx context.Context) error {
			_, _, err := repositories.NewBranches(h.Gorm).Pin(ctx, ann(), h.long(), answered, true)
			return err
		},
	}
}

// usage is what was spent, for reports and limits.
func (h *bigHistory) usage() map[string]question {
	today := time.Now().UTC().Truncate(24 * time.Hour)
	report := func(tenant core.Tenant, by core.UsageGroup) question {
		return asks(func(ctx context.Context) (core.UsageReport, error) {
			return h.modelCalls.Usage(ctx, tenant, core.UsageQuery{GroupBy: by, From: today.AddDate(0, 0, -30), To: today.AddDate(0, 0, 1)})
		})
	}
	all := map[string]question{
		"spend limit": asks(func(ctx context.Context) (core.Spent, error) { return h.modelCalls.Spent(ctx, "ann", today) }),
	}
	for _, by := range usageGroups() {
		all["usage by "+string(by)] = report(ann(), by)
		all["usage of a user by "+string(by)] = report(core.Tenant{Owner: "ann", User: "user 7"}, by)
	}
	return all
}

// outside are deliveries, files and requests that come again.
func (h *bigHistory) outside() map[string]question {
	keys := repositories.NewIdempotencyKeys(h.Gorm)
	claim := func(limits map[string]int) question {
		return asks(func(ctx context.Context) ([]core.Delivery, error) {
			return h.deliveries.Claim(ctx, core.DeliveryClaim{Worker: worker, Lease: time.Minute, Limit: 16, Each: 4, Receivers: limits})
		})
	}
	return map[string]question{
		"claim deliveries":              claim(nil),
		"claim no deliveries":           claim(map[string]int{"dead.example": 0}),
		"deliveries that wait, counted": asks(h.deliveries.Stats),
		"give up a receiver": asks(func(ctx context.Context) ([]core.Event, error) {
			return h.deliveries.GiveUpReceiver(ctx, core.ReceiverGivenUp{Receiver: "dead.example", Age: 24 * time.Hour, Limit: 100})
		}),
		"upload": asks(func(ctx context.Context) (core.Blob, error) {
			return h.blobs.Put(ctx, blobOf("", "new.txt", "new"), core.BlobContent{Data: []byte("new")}, core.BlobRoom{Owner: 1 << 40, User: 1 << 40})
		}),
		"a request that may come again": func(ctx context.Context) error {
			in := keyed("ann", core.NewID[string]())
			if _, err := keys.Begin(ctx, in); err != nil {
				return err
			}
			return keys.Finish(ctx, in, core.KeyedAnswer{RequestHash: "h", Status: 200, Kept: true, Body: []byte(`{"id":"` + string(h.long()) + `"}`)})
		},
	}
}

// turns is what a run costs, and what keeps runs going.
func (h *bigHistory) turns(t *testing.T) map[string]question {
	t.Helper()
	in := ask(h.long(), "one more")
	in.User, in.MaxOwned, in.MaxOfUser, in.MaxQueued, in.ClientMessageID = "user 7", 1000, 20, 100, "c-1"
	queued := ask(h.long(), "and one more")
	return map[string]question{
		"turn": func(ctx context.Context) error {
			a, err := h.runs.Accept(ctx, ann(), in)
			if err != nil {
				return err
			}
			if _, err := h.runs.Accept(ctx, ann(), queued); err != nil {
				return err
			}
			_, err = h.runs.Write(ctx, core.RunWrite{
				RunID: a.Run.ID, SessionID: h.long(), Attempt: 1, Messages: []core.Message{answer("yes")},
				ModelCalls: []core.ModelCall{{Purpose: core.PurposeAnswer, Model: "m"}}, End: &core.RunEnd{Status: core.RunSucceeded},
			})
			if err != nil {
				return err
			}
			c, err := h.runs.Claim(ctx, h.long(), worker)
			if err != nil {
				return err
			}
			if _, err := h.runs.Renew(ctx, worker, []core.RunID{c.Run.ID}); err != nil {
				return err
			}
			_, _, err = h.runs.RequestCancel(ctx, ann(), c.Run.ID)
			if err != nil {
				return err
			}
			_, err = h.runs.Write(ctx, core.RunWrite{RunID: c.Run.ID, SessionID: h.long(), Attempt: 1, End: &core.RunEnd{Status: core.RunCanceled}})
			return err
		},
		"title": func(ctx context.Context) error {
			_, _, err := h.sessions.Update(ctx, ann(), h.long(), core.SessionPatch{Title: new("pumps of the hall")})
			return err
		},
		"queue":            asks(h.runs.Queue),
		"sessions waiting": asks(func(ctx context.Context) ([]core.SessionID, error) { return h.runs.Waiting(ctx, 100) }),
		"take over": asks(func(ctx context.Context) ([]core.Run, error) {
			return h.runs.TakeOver(ctx, core.TakeOver{Worker: worker, Lapsed: true, Limit: 100})
		}),
		"runs due":          asks(func(ctx context.Context) (map[int]int, error) { return h.runs.Due(ctx, worker, true) }),
		"cancels":           asks(func(ctx context.Context) ([]core.RunID, error) { return h.runs.CancelRequested(ctx, worker) }),
		"release":           func(ctx context.Context) error { return h.runs.Release(ctx, worker) },
		"approvals expired": asks(func(ctx context.Context) ([]core.Event, error) { return h.runs.ExpireApprovals(ctx, 100) }),
	}
}

// sweeps are periodic queries, which usually find nothing.
func (h *bigHistory) sweeps() map[string]question {
	r := repositories.NewPurges(h.Gorm)
	const days = 24 * time.Hour
	return map[string]question{
		"sweep of events": asks(func(ctx context.Context) (core.SweptEvents, error) {
			return r.SweepEvents(ctx, 30*days, core.EventPlace{At: time.Now().Add(-31 * days)}, 100)
		}),
		"sweep of events that goes on": asks(func(ctx context.Context) (core.SweptEvents, error) {
			return r.SweepEvents(ctx, 30*days, core.EventPlace{At: time.Now().Add(-30 * days)}, 500)
		}),
		"archived sessions": asks(func(ctx context.Context) ([]core.SessionID, error) { return r.ExpiredSessions(ctx, false, 30*days, 20) }),
		"sweep of files":    asks(func(ctx context.Context) (core.SweptBlobs, error) { return h.blobs.Sweep(ctx, time.Now().Add(-days)) }),
		"abandoned sessions": asks(func(ctx context.Context) ([]core.SessionID, error) {
			return repositories.NewPurges(h.Gorm).Abandoned(ctx, worker, 20)
		}),
		"sweep of keys": asks(func(ctx context.Context) (int, error) { return repositories.NewIdempotencyKeys(h.Gorm).Sweep(ctx, 100) }),
	}
}

// deletions take away one thing of many.
func (h *bigHistory) deletions() map[string]question {
	purges, branches := repositories.NewPurges(h.Gorm), repositories.NewBranches(h.Gorm)
	_, asked, answered := h.turn(h.n / 3)
	return map[string]question{
		"deletion of a question": asks(func(ctx context.Context) ([]core.Event, error) { return branches.Delete(ctx, ann(), h.long(), asked) }),
		"deletion of an answer": asks(func(ctx context.Context) ([]core.Event, error) {
			return branches.Delete(ctx, ann(), h.long(), answered)
		}),
		"purge of a session": asks(func(ctx context.Context) ([]core.Event, error) { return purges.Session(ctx, h.sessionID(5), false) }),
		"kept answers of sessions": asks(func(ctx context.Context) (int64, error) {
			return purges.Answers(ctx, "", "", []core.SessionID{core.SessionID(h.sessionID(5)), core.SessionID(h.sessionID(6))}, false)
		}),
	}
}
