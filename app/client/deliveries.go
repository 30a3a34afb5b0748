package client

import (
	"context"
	"net/url"

	"bobbin/app/core"
)

// webhook is a webhook in a request, with its secret.
type webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

// webhookOf converts a webhook for a request; nil stays nil.
func webhookOf(w *core.Webhook) *webhook {
	if w == nil {
		return nil
	}
	return &webhook{URL: string(w.URL), Secret: w.Secret}
}

// webhookPath is the path of the owner's default webhook.
const webhookPath = "/api/v1/webhook"

// DefaultWebhook returns the webhook for runs whose message and session have none.
func (c *Client) DefaultWebhook(ctx context.Context) (core.Webhook, error) {
	return callJSON[core.Webhook](ctx, c, getRequest(webhookPath, nil))
}

// SetDefaultWebhook replaces the default webhook.
func (c *Client) SetDefaultWebhook(ctx context.Context, hook core.Webhook) (core.Webhook, error) {
	return callJSON[core.Webhook](ctx, c, putRequest(webhookPath, webhookOf(&hook)))
}

// DeleteDefaultWebhook removes the default webhook.
func (c *Client) DeleteDefaultWebhook(ctx context.Context) error {
	return c.sendDelete(ctx, webhookPath, nil)
}

// Deliveries returns the webhook deliveries of a run, oldest first.
func (c *Client) Deliveries(ctx context.Context, run core.RunID) ([]core.Delivery, error) {
	page, err := callJSON[core.Page[core.Delivery]](ctx, c, getRequest(runPath(run, "/deliveries"), nil))
	return page.Items, err
}

// RetryDelivery sends a delivery again immediately, whatever its state.
func (c *Client) RetryDelivery(ctx context.Context, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	return callJSON[core.Delivery](ctx, c, postRequest(runPath(run, "/deliveries/"+url.PathEscape(string(id))+"/retry"), struct{}{}))
}
