package client

import (
	"context"
	"net/url"

	"bobbin/app/core"
)

// webhook is a webhook in a body, with its secret.
type webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

// webhookOf returns the body of a webhook; nil stays nil.
func webhookOf(w *core.Webhook) *webhook {
	if w == nil {
		return nil
	}
	return &webhook{URL: string(w.URL), Secret: w.Secret}
}

// Deliveries returns what was told of a run, the oldest first.
func (c *Client) Deliveries(ctx context.Context, run core.RunID) ([]core.Delivery, error) {
	page, err := call[core.Page[core.Delivery]](ctx, c, get(runPath(run, "/deliveries"), nil))
	return page.Items, err
}

// RetryDelivery has it delivered again at once, whatever became of it.
func (c *Client) RetryDelivery(ctx context.Context, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	return call[core.Delivery](ctx, c, post(runPath(run, "/deliveries/"+url.PathEscape(string(id))+"/retry"), struct{}{}))
}
