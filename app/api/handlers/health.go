package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// checkTimeout bounds one check of Ready.
const checkTimeout = 2 * time.Second

// Check is something that must work for the server to be of use.
type Check struct {
	Name string // shown to everybody
	// Run returns nil if it works; its error is logged and not shown.
	Run func(ctx context.Context) error
}

// Build is which program this is.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
}

// Health answers the questions of operators and their probes.
type Health struct {
	checks []Check
	build  Build
	drain  <-chan struct{}
}

// NewHealth returns the handlers of health. When drain is closed the server is no
// longer ready.
func NewHealth(checks []Check, build Build, drain <-chan struct{}) *Health {
	return &Health{checks: checks, build: build, drain: drain}
}

// readiness is the answer of Ready.
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks"`
}

// Live answers 200 as long as the process can answer at all.
func (h *Health) Live(c *gin.Context) error {
	return answer(c, http.StatusOK, map[string]string{"status": "ok"})
}

// Ready answers 200 if all checks pass, else 503 with those that do not.
func (h *Health) Ready(c *gin.Context) error {
	select {
	case <-h.drain:
		return core.Errorf(core.ErrUnavailable, "the server is stopping")
	default:
	}
	ready := readiness{Status: "ready", Checks: map[string]string{}}
	var faults []core.FieldError
	var causes []error
	for _, check := range h.checks {
		ready.Checks[check.Name] = "ok"
		if err := runCheck(c.Request.Context(), check); err != nil {
			faults = append(faults, core.FieldError{Field: check.Name, Detail: "does not work"})
			causes = append(causes, err)
		}
	}
	if len(faults) > 0 {
		return &core.Error{Kind: core.ErrUnavailable, Code: "not_ready", Message: "the server is not ready", Fields: faults, Err: errors.Join(causes...)}
	}
	return answer(c, http.StatusOK, ready)
}

func runCheck(ctx context.Context, check Check) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	return check.Run(ctx)
}

// Version answers which program this is.
func (h *Health) Version(c *gin.Context) error {
	return answer(c, http.StatusOK, h.build)
}
