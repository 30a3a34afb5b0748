package handlers

import (
	"context"
	"iter"
	"net/http"
	"strconv"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Runs answers /api/v1/runs, and the runs and events of sessions.
type Runs struct {
	chat     chatService
	sessions core.SessionStore
	runs     core.RunStore
	streams  *StreamLimiter
}

// NewRuns returns the handlers of runs.
func NewRuns(s Services, streams *StreamLimiter) *Runs {
	return &Runs{chat: s.Chat, sessions: s.Sessions, runs: s.Runs, streams: streams}
}

// Get answers one run.
func (h *Runs) Get(c *gin.Context) error {
	run, err := h.runParam(c)
	return respond(c, http.StatusOK, run, err)
}

// List answers a page of a session's runs, newest first.
func (h *Runs) List(c *gin.Context) error {
	q := readQuery(c, "limit", "cursor")
	query := q.pageParams()
	if err := q.err(); err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	page, err := h.runs.List(c.Request.Context(), scopeOf(c), session.ID, query)
	if err != nil {
		return err
	}
	return writePage(c, page)
}

// SessionEvents streams all events of a session: those after the event that the caller
// names, else new ones.
func (h *Runs) SessionEvents(c *gin.Context) error {
	after, given, err := resumeAfter(c)
	if err != nil {
		return err
	}
	session, err := sessionParam(c, h.sessions)
	if err != nil {
		return err
	}
	if !given {
		after = session.LastEventSeq
	}
	tenant := scopeOf(c)
	held, err := h.streams.acquireSlot(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	// The stream starts after the event with the number after. The reader gets that number first, to
	// reconnect with it if the connection breaks before the next event.
	source := func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.Watch(ctx, tenant, session.ID, core.Cursor{After: after})
	}
	held.endless = true
	number := strconv.FormatInt(after, 10)
	c.Header("Last-Event-ID", number)
	opts := h.streams.limits.Stream
	opts.ID = number
	return h.streams.serveEvents(c, held, opts, source)
}

// Heads streams the heads of the caller's sessions as they change.
func (h *Runs) Heads(c *gin.Context) error {
	tenant := scopeOf(c)
	held, err := h.streams.acquireSlot(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	held.endless = true
	return h.streams.serveEvents(c, held, h.streams.limits.Stream, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.WatchHeads(ctx, tenant)
	})
}

// Events streams the events of a run: those after the event that the caller names, else
// all. It ends with the run.
func (h *Runs) Events(c *gin.Context) error {
	after, _, err := resumeAfter(c)
	if err != nil {
		return err
	}
	run, err := h.runParam(c)
	if err != nil {
		return err
	}
	tenant := scopeOf(c)
	held, err := h.streams.acquireSlot(c)
	if err != nil {
		return err
	}
	defer h.streams.releaseSlot(held)
	return h.streams.serveRun(c, held, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.WatchRun(ctx, tenant, run.ID, core.Cursor{After: after})
	})
}

// Cancel cancels a run and keeps its partial answer: 200 with the ended run, 202 if it has
// not ended yet. It may be repeated.
func (h *Runs) Cancel(c *gin.Context) error {
	id := core.RunID(c.Param("id"))
	body, err := readBody[struct {
		Wait bool `json:"wait"`
	}](c)
	if err != nil {
		return err
	}
	run, err := h.cancelAndWait(c, id, body.Wait)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !run.Status.Ended() {
		status = http.StatusAccepted
		c.Header("Location", runPath(id))
	}
	return writeJSON(c, status, run)
}

func (h *Runs) cancelAndWait(c *gin.Context, id core.RunID, wait bool) (core.Run, error) {
	ctx, tenant := c.Request.Context(), scopeOf(c)
	if !wait {
		return h.chat.Cancel(ctx, tenant, id, false)
	}
	held, err := h.streams.acquireSlot(c)
	if err != nil {
		return core.Run{}, err
	}
	defer h.streams.releaseSlot(held)
	limited, stop := context.WithTimeout(ctx, h.streams.limits.Wait)
	defer stop()
	run, err := h.chat.Cancel(limited, tenant, id, true)
	if err == nil {
		return run, nil
	}
	run, getErr := runAfterTimeout(ctx, h.runs, id, err)
	if getErr == nil && !run.Status.Ended() && !run.CancelRequested {
		return core.Run{}, err // the cancellation was not stored: the caller must retry
	}
	return run, getErr
}

// runParam returns the run in the path.
func (h *Runs) runParam(c *gin.Context) (core.Run, error) {
	return h.runs.Get(c.Request.Context(), scopeOf(c), core.RunID(c.Param("id")))
}
