package handlers

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// Deliveries answers /api/v1/runs/{id}/deliveries.
type Deliveries struct {
	deliveries deliveryService
}

// NewDeliveries returns the handlers of deliveries.
func NewDeliveries(s Services) *Deliveries { return &Deliveries{deliveries: s.Deliveries} }

// List answers the deliveries of a run, oldest first. They are few, so all are on one page.
func (h *Deliveries) List(c *gin.Context) error {
	run := core.RunID(c.Param("id"))
	list, err := h.deliveries.List(c.Request.Context(), scopeOf(c), run)
	if err != nil {
		return err
	}
	return writePage(c, core.Page[core.Delivery]{Items: list})
}

// Retry repeats a delivery: 202 with the delivery.
func (h *Deliveries) Retry(c *gin.Context) error {
	run := core.RunID(c.Param("id"))
	if _, err := readBody[struct{}](c); err != nil {
		return err
	}
	id := core.DeliveryID(c.Param("did"))
	if !core.ValidID(id) {
		return core.Errorf(core.ErrNotFound, "delivery %s does not exist", shortenInput(string(id)))
	}
	d, err := h.deliveries.Retry(c.Request.Context(), scopeOf(c), run, id)
	return respond(c, http.StatusAccepted, d, err)
}
