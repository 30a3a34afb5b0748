package handlers

import (
	"context"
	"iter"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Runs answers /api/v1/runs, and the runs and events of sessions.
type Runs struct {
	chat     runService
	sessions sessionStore
	runs     runStore
	streams  *Streams
}

// NewRuns returns the handlers of runs.
func NewRuns(s Services, streams *Streams) *Runs {
	return &Runs{chat: s.Chat, sessions: s.Sessions, runs: s.Runs, streams: streams}
}

// Get answers one run.
func (h *Runs) Get(c *gin.Context) error {
	run, err := h.param(c)
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, run)
}

// List answers a page of a session's runs, newest first.
func (h *Runs) List(c *gin.Context) error {
	q := readQuery(c, "limit", "cursor")
	query := q.page()
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
	return answer(c, http.StatusOK, listOf(page))
}

// SessionEvents streams everything that happens in a session, whatever caused
// it: after the event that the caller names, else from now on.
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
	scope := scopeOf(c)
	place, err := h.streams.hold(c)
	if err != nil {
		return err
	}
	defer h.streams.release(place)
	return h.streams.session(c, place, after, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.Watch(ctx, scope, session.ID, core.From{After: after})
	})
}

// Events streams a run: after the event that the caller names, else from the
// run's first. It ends with the run.
func (h *Runs) Events(c *gin.Context) error {
	after, _, err := resumeAfter(c)
	if err != nil {
		return err
	}
	run, err := h.param(c)
	if err != nil {
		return err
	}
	scope := scopeOf(c)
	place, err := h.streams.hold(c)
	if err != nil {
		return err
	}
	defer h.streams.release(place)
	return h.streams.run(c, place, func(ctx context.Context) iter.Seq2[core.Event, error] {
		return h.chat.WatchRun(ctx, scope, run.ID, core.From{After: after})
	})
}

// cancelRun is the body of Cancel.
type cancelRun struct {
	Wait bool `json:"wait"`
}

// Cancel ends a run and keeps what was said: 200 with the ended run, 202 if it
// has not ended yet. It may be repeated.
func (h *Runs) Cancel(c *gin.Context) error {
	id, err := idParam[core.RunID](c, "run")
	if err != nil {
		return err
	}
	body, err := readBody[cancelRun](c)
	if err != nil {
		return err
	}
	run, err := h.cancel(c, id, body.Wait)
	if err != nil {
		return err
	}
	status := http.StatusOK
	if !run.Status.Ended() {
		status = http.StatusAccepted
		c.Header("Location", runPath(id))
	}
	return answer(c, status, run)
}

func (h *Runs) cancel(c *gin.Context, id core.RunID, wait bool) (core.Run, error) {
	ctx, scope := c.Request.Context(), scopeOf(c)
	if !wait {
		return h.chat.Cancel(ctx, scope, id, false)
	}
	place, err := h.streams.hold(c)
	if err != nil {
		return core.Run{}, err
	}
	defer h.streams.release(place)
	limited, stop := context.WithTimeout(ctx, h.streams.limits.Wait)
	defer stop()
	run, err := h.chat.Cancel(limited, scope, id, true)
	if err == nil {
		return run, nil
	}
	run, again := stillRunning(c, h.runs, id, err)
	if again == nil && !run.Status.Ended() && !run.CancelRequested {
		return core.Run{}, err // it was not taken: who asked for it must do so again
	}
	return run, again
}

// param returns the run that the path names.
func (h *Runs) param(c *gin.Context) (core.Run, error) {
	id, err := idParam[core.RunID](c, "run")
	if err != nil {
		return core.Run{}, err
	}
	return h.runs.Get(c.Request.Context(), scopeOf(c), id)
}
