package talk

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// What a Ctrl-C comes to when it ends the waiting and not the answer.
var (
	errStopped = core.Errorf(core.ErrCanceled, "stopped")
	errLeft    = core.Errorf(core.ErrCanceled, "no longer waiting; if the message has arrived, the answer will be in the conversation")
)

// interruptible does something that ends with the next Ctrl-C.
func (c *Conversation) interruptible(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-c.Interrupts:
			cancel(errStopped)
		case <-done:
		}
	}()
	err := do(ctx)
	close(done)
	<-ended
	if err != nil && errors.Is(context.Cause(ctx), errStopped) {
		err = errStopped
	}
	cancel(nil)
	return err
}

// cancelOnInterrupt cancels a run at the first Ctrl-C after its id is known, and
// ends ctx by leave at the second one, or when the run cannot be canceled. It
// returns when ctx ends.
func (v *view) cancelOnInterrupt(ctx context.Context, leave context.CancelCauseFunc) {
	var run core.RunID
	wanted := 0
	for {
		select {
		case run = <-v.run:
		case <-v.c.Interrupts:
			wanted++
		case <-ctx.Done():
			return
		}
		if wanted > 1 {
			leave(errLeft)
			return
		}
		if wanted == 1 && run != "" {
			if _, err := v.c.Service.CancelRun(ctx, run, false); err != nil {
				leave(errLeft)
				return
			}
			run = "" // asked for once
		}
	}
}
