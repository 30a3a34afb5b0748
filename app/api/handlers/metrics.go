package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// MetricsOptions configure /metrics.
type MetricsOptions struct {
	// Expose returns all metrics in a text format, and its media type (telemetry.Telemetry.Expose).
	Expose func() (mediaType string, body []byte, err error)
	Open   bool // readable without a key; else callers need core.CanMetrics
}

// Metrics answers /metrics. Metrics cover all owners, so an ordinary key does not suffice.
type Metrics struct{ MetricsOptions }

// NewMetrics returns the handlers.
func NewMetrics(o MetricsOptions) *Metrics { return &Metrics{o} }

// Get answers the metrics in Prometheus' text format.
func (m *Metrics) Get(c *gin.Context) error {
	mediaType, body, err := m.Expose()
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, mediaType, body)
	return nil
}
