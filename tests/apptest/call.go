package apptest

import (
	"context"
	"errors"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/process"
)

// InMessage are the fields of operations on a message.
func InMessage(session core.SessionID, message core.MessageID) ops.InMessage {
	return ops.InMessage{InSession: ops.InSession{SessionID: session}, MessageID: message}
}

// AwaitDeletion waits until the deletion has succeeded and returns it.
func AwaitDeletion(ctx context.Context, c client.Caller, id core.DeletionID) (core.Deletion, error) {
	for {
		d, err := client.Call(ctx, c, ops.GetDeletion, ops.InDeletion{DeletionID: id})
		if err != nil || d.Status == core.DeletionSucceeded || !process.Pause(ctx, 20*time.Millisecond) {
			return d, errors.Join(err, context.Cause(ctx))
		}
	}
}
