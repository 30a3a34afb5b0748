package handlers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// checkTimeout bounds one readiness check.
const checkTimeout = 2 * time.Second

// Check is a readiness check.
type Check struct {
	Name string // public
	// Run returns nil if the check passes. Only the message of a core.Error is shown.
	Run func(ctx context.Context) error
	// Optional means that the server is degraded but ready while the check fails.
	Optional bool
}

// Build identifies the program.
type Build struct {
	Version string `json:"version"`
	Commit  string `json:"commit"`
	Date    string `json:"date"`
	Go      string `json:"go"`
	// Program is the path of the executable, which is started to read documents; empty =
	// documents are not read.
	Program string `json:"-"`
}

// Health answers /healthz, /readyz and /version.
type Health struct {
	Checks []Check
	Build  Build
	Drain  <-chan struct{} // once it is closed the server is not ready
}

// readiness is the answer of Ready, and without checks that of Live.
type readiness struct {
	Status string            `json:"status"`
	Checks map[string]string `json:"checks,omitzero"`
}

// Live answers 200.
func (h *Health) Live(c *gin.Context) error {
	return writeJSON(c, http.StatusOK, readiness{Status: "ok"})
}

// Ready answers 200 if all checks pass that are not optional, else 503 with the failed ones.
func (h *Health) Ready(c *gin.Context) error {
	select {
	case <-h.Drain:
		return &core.Error{Kind: core.ErrUnavailable, Code: "stopping", Message: "the server is stopping"}
	default:
	}
	ready := readiness{Status: "ready", Checks: map[string]string{}}
	var faults []core.FieldError
	var causes []error
	for _, check := range h.Checks {
		ready.Checks[check.Name] = "ok"
		ctx, cancel := context.WithTimeout(c.Request.Context(), checkTimeout)
		err := check.Run(ctx)
		cancel()
		switch {
		case err == nil:
		case check.Optional:
			ready.Status, ready.Checks[check.Name] = "degraded", core.ShownMessage(err, "failed")
		default:
			faults = append(faults, core.FieldError{Field: check.Name, Detail: core.ShownMessage(err, "failed")})
			causes = append(causes, err)
		}
	}
	if len(faults) > 0 {
		return &core.Error{Kind: core.ErrUnavailable, Code: "not_ready", Message: "the server is not ready", Fields: faults, Err: errors.Join(causes...)}
	}
	return writeJSON(c, http.StatusOK, ready)
}

// Version answers the version of the program.
func (h *Health) Version(c *gin.Context) error {
	return writeJSON(c, http.StatusOK, h.Build)
}
