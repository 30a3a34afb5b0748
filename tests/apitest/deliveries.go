package apitest

import (
	"cmp"
	"context"

	"bobbin/app/core"
)

// Deliveries is the backend as the repository of deliveries.
type Deliveries struct {
	*Backend
	core.DeliveryStore // the methods that the API does not call
}

// List answers one failed delivery that will be retried.
func (d Deliveries) List(ctx context.Context, tenant core.Tenant, run core.RunID) ([]core.Delivery, error) {
	return []core.Delivery{sampleDelivery()}, cmp.Or(d.recordCall(ctx, "Deliveries.List", tenant, run), missing("run", run, RunID))
}

// ListAll answers the same delivery.
func (d Deliveries) ListAll(ctx context.Context, tenant core.Tenant, q core.DeliveryQuery) (core.Page[core.Delivery], error) {
	return core.Page[core.Delivery]{Items: []core.Delivery{sampleDelivery()}}, d.recordCall(ctx, "Deliveries.ListAll", tenant, q)
}

// Redeliver answers the delivery, due immediately.
func (d Deliveries) Redeliver(ctx context.Context, tenant core.Tenant, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	again := sampleDelivery()
	again.NextAt, again.Error = nil, ""
	return again, cmp.Or(d.recordCall(ctx, "Deliveries.Retry", tenant, run, id), missing("run", run, RunID), missing("delivery", id, DeliveryID))
}

func sampleDelivery() core.Delivery {
	next := Time()
	return core.Delivery{
		ID: DeliveryID, SessionID: SessionID, RunID: RunID, Kind: core.DeliveryWebhook, Event: core.EventRunSucceeded,
		Target: "https://example.com/hook?token=hush", Secret: "whsec_hush", State: core.DeliveryPending, Attempt: 2,
		NextAt: &next, Error: "the receiver answered with status 500 Internal Server Error", CreatedAt: Time(),
	}
}

// DefaultWebhook answers a webhook.
func (c Chat) DefaultWebhook(ctx context.Context, tenant core.Tenant) (core.Webhook, error) {
	return core.Webhook{URL: "https://example.com/hook?token=t", Secret: "whsec_s"}, c.recordCall(ctx, "DefaultWebhook", tenant)
}

// SetDefaultWebhook answers the webhook.
func (c Chat) SetDefaultWebhook(ctx context.Context, tenant core.Tenant, hook core.Webhook) (core.Webhook, error) {
	return hook, c.recordCall(ctx, "SetDefaultWebhook", tenant, hook)
}

// DeleteDefaultWebhook records the call.
func (c Chat) DeleteDefaultWebhook(ctx context.Context, tenant core.Tenant) error {
	return c.recordCall(ctx, "DeleteDefaultWebhook", tenant)
}
