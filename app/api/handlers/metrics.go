package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// exposition is the metrics of the process (telemetry.Telemetry).
type exposition interface {
	// Expose returns all metrics in a text format, and its media type.
	Expose() (mediaType string, body []byte, err error)
}

// MetricsOptions are what is shown of the metrics, and to whom.
type MetricsOptions struct {
	Exposition exposition
	Open       bool // everybody may read them; else who has the right core.CanMetrics
}

// Metrics shows the metrics. They tell what all owners together use, so an owner's
// key does not suffice.
type Metrics struct{ MetricsOptions }

// NewMetrics returns the handlers.
func NewMetrics(o MetricsOptions) *Metrics { return &Metrics{o} }

// Get answers the metrics in Prometheus' text format.
func (m *Metrics) Get(c *gin.Context) error {
	mediaType, body, err := m.Exposition.Expose()
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, mediaType, body)
	return nil
}
