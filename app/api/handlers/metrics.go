package handlers

import (
	"net/http"
	"slices"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// exposition is the metrics of the process (telemetry.Telemetry).
type exposition interface {
	// Expose returns all metrics in a text format, and its media type.
	Expose() (mediaType string, body []byte, err error)
}

// MetricsOptions are what is shown of the metrics, and to whom.
type MetricsOptions struct {
	Exposition exposition
	Open       bool     // everybody may read them
	Keys       []string // names of the API keys that may; besides, who calls from this machine without one
}

// Metrics shows the metrics. They tell what all owners together use, so an owner's
// key does not suffice.
type Metrics struct{ MetricsOptions }

// NewMetrics returns the handlers.
func NewMetrics(o MetricsOptions) *Metrics { return &Metrics{o} }

// Allowed returns core.ErrForbidden to who may not read the metrics.
func (m *Metrics) Allowed(c *gin.Context) error {
	caller, ok := core.IdentityFrom(c.Request.Context())
	if ok && (caller.Key == "" || slices.Contains(m.Keys, caller.Key)) {
		return nil
	}
	return core.Errorf(core.ErrForbidden, "this key may not read the metrics, which are of all owners; the operator can add its name to metrics.keys, or set metrics.open")
}

// Get answers the metrics in Prometheus' text format.
func (m *Metrics) Get(c *gin.Context) error {
	mediaType, body, err := m.Exposition.Expose()
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, mediaType, body)
	return nil
}
