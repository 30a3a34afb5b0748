package handlers

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
)

func (h Native) registerRuns(r Router) {
	bind(r, ops.ListRuns, listOf(h, h.Runs.List))
	bind(r, ops.ListAllRuns, func(ctx context.Context, tenant core.Tenant, in core.RunQuery) (core.RunList, error) {
		if in.From.IsZero() {
			in.From = time.Now().Add(-day)
		}
		return h.Runs.ListAll(ctx, tenant, in)
	})
	bind(r, ops.GetRun, func(ctx context.Context, tenant core.Tenant, in ops.InRun) (core.Run, error) {
		return h.Runs.Get(ctx, tenant, in.RunID)
	})
	bind(r, ops.ListModelCalls, func(ctx context.Context, tenant core.Tenant, in ops.InRun) (core.Page[core.ModelCall], error) {
		run, err := h.Runs.Get(ctx, tenant, in.RunID)
		if err != nil {
			return core.Page[core.ModelCall]{}, err
		}
		calls, err := h.Usage.OfRun(ctx, run) // they are few, so all are on one page
		return core.Page[core.ModelCall]{Items: calls}, err
	})
	bindRaw(r, ops.WatchRun, h.watchRun)
	bind(r, ops.CancelRun, h.cancelRun)
	bind(r, ops.DecideApproval, func(ctx context.Context, tenant core.Tenant, in ops.Decision) (core.Approval, error) {
		given := slices.DeleteFunc([]bool{in.Decision != "", in.Respond != "", in.Result != nil}, func(is bool) bool { return !is })
		switch {
		case len(given) != 1:
			return core.Approval{}, core.OneFault("decision", "must be the only answer, or respond, or result: give one of the three")
		case in.Decision != "" && in.Decision != "approve" && in.Decision != "deny":
			return core.Approval{}, core.OneFault("decision", "must be approve or deny")
		}
		return h.Chat.Decide(ctx, tenant, in.RunID, in.ApprovalID, core.ApprovalDecision{
			Approve: in.Decision == "approve", Arguments: string(in.Arguments), Respond: in.Respond, Result: in.Result, IsError: in.IsError, Comment: in.Comment,
		})
	})
	bind(r, ops.ListDeliveries, func(ctx context.Context, tenant core.Tenant, in ops.InRun) (core.Page[core.Delivery], error) {
		list, err := h.Deliveries.List(ctx, tenant, in.RunID) // they are few, so all are on one page
		return core.Page[core.Delivery]{Items: list}, err
	})
	bind(r, ops.ListAllDeliveries, h.Deliveries.ListAll)
	bind(r, ops.RetryDelivery, func(ctx context.Context, tenant core.Tenant, in ops.InDelivery) (core.Delivery, error) {
		return h.Redeliver(ctx, tenant, in.RunID, in.DeliveryID)
	})
}

// watchSession streams all events of a session: those after the event that the caller
// names, else new ones.
func (h Native) watchSession(c *gin.Context, in ops.SessionEvents) error {
	after, given, err := resumeAfter(c, in.Resume)
	if err != nil {
		return err
	}
	session, err := h.Sessions.Get(c.Request.Context(), scopeOf(c), in.SessionID)
	if err != nil {
		return err
	}
	if !given {
		after = session.LastEventSeq
	}
	// The stream starts after the event with the number after. The reader gets that number first, to
	// reconnect with it if the connection breaks before the next event.
	number, tenant := strconv.FormatInt(after, 10), scopeOf(c)
	return h.stream(c, number, true, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.Chat.Feed.Watch(ctx, tenant, session.ID, core.Cursor{After: after})
	})
}

// stream serves events, with the id of the event before them. An endless stream does not end by itself.
func (h Native) stream(c *gin.Context, id string, endless bool, source EventSource) error {
	held, err := h.Streams.acquireSlot(c.Request.Context())
	if err != nil {
		return err
	}
	defer held.Release()
	held.endless = endless
	opts := h.Streams.Stream
	if opts.ID = id; id != "" {
		c.Header("Last-Event-ID", id)
	}
	return h.Streams.serveEvents(c, held, opts, source)
}

// watchRun streams the events of a run: those after the event that the caller names, else
// all. It ends with the run.
func (h Native) watchRun(c *gin.Context, in ops.RunEvents) error {
	after, _, err := resumeAfter(c, in.Resume)
	if err != nil {
		return err
	}
	run, err := h.Runs.Get(c.Request.Context(), scopeOf(c), in.RunID)
	if err != nil {
		return err
	}
	tenant := scopeOf(c)
	return h.stream(c, "", false, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.Chat.WatchRun(ctx, tenant, run, core.Cursor{After: after})
	})
}

// cancelRun cancels a run and keeps its partial answer. It may be repeated.
func (h Native) cancelRun(ctx context.Context, tenant core.Tenant, in ops.Cancel) (core.Run, error) {
	if in.Wait {
		held, err := h.Streams.acquireSlot(ctx)
		if err != nil {
			return core.Run{}, err
		}
		defer held.Release()
	}
	run, err := h.Chat.Cancel(ctx, tenant, in.RunID)
	if err != nil || !in.Wait || run.Status.Ended() {
		return run, err
	}
	out, err := h.Chat.WaitFor(ctx, tenant, run, h.Streams.Wait)
	return out.Run, err
}
