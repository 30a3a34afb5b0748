package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"
)

// MetricsOptions configure /metrics.
type MetricsOptions struct {
	// Expose returns all metrics in a text format, and its media type (telemetry.Telemetry.Expose).
	Expose func() (mediaType string, body []byte, err error)
	// Open: readable without a key. Else callers need core.CanMetrics: metrics cover all owners, so
	// an ordinary key does not suffice.
	Open bool
}

// Serve answers the metrics in Prometheus' text format.
func (o MetricsOptions) Serve(c *gin.Context) error {
	mediaType, body, err := o.Expose()
	if err != nil {
		return err
	}
	Write(c, http.StatusOK, mediaType, body)
	return nil
}
