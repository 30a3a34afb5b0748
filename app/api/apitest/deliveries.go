package apitest

import (
	"context"

	"bobbin/app/core"
)

// Deliveries is the backend as the service of deliveries.
type Deliveries struct{ *Backend }

// List answers one delivery that failed and waits.
func (d Deliveries) List(ctx context.Context, scope core.Scope, run core.RunID) ([]core.Delivery, error) {
	if err := d.called(ctx, "Deliveries.List", scope, run); err != nil {
		return nil, err
	}
	if run != RunID {
		return nil, missing("run", run)
	}
	return []core.Delivery{delivery()}, nil
}

// Retry answers the delivery, due at once.
func (d Deliveries) Retry(ctx context.Context, scope core.Scope, run core.RunID, id core.DeliveryID) (core.Delivery, error) {
	if err := d.called(ctx, "Deliveries.Retry", scope, run, id); err != nil {
		return core.Delivery{}, err
	}
	if run != RunID || id != DeliveryID {
		return core.Delivery{}, missing("delivery", id)
	}
	again := delivery()
	again.NextAt, again.Error = nil, ""
	return again, nil
}

func delivery() core.Delivery {
	next := Time()
	return core.Delivery{
		ID: DeliveryID, SessionID: SessionID, RunID: RunID, Kind: core.DeliveryWebhook, Event: core.EventRunSucceeded,
		Target: "https://example.com/hook?token=hush", Secret: "whsec_hush", State: core.DeliveryPending, Attempt: 2,
		NextAt: &next, Error: "the receiver answered with status 500 Internal Server Error", CreatedAt: Time(),
	}
}
