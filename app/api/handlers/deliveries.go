package handlers

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/gin-gonic/gin"

	"bobbin/app/core"
)

// webhook is where the ends of runs are reported.
type webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret"`
}

// UnmarshalJSON refuses unknown fields. Its error repeats nothing of the value, which
// holds a secret.
func (w *webhook) UnmarshalJSON(data []byte) error {
	type plain webhook
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if len(data) == 0 || data[0] != '{' || dec.Decode((*plain)(w)) != nil {
		return errors.New("must be an object with the strings url and secret")
	}
	return nil
}

// toCore returns the webhook as a core.Webhook; nil stays nil.
func (w *webhook) toCore() *core.Webhook {
	if w == nil {
		return nil
	}
	return &core.Webhook{URL: core.Target(w.URL), Secret: w.Secret}
}

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
