package chat

import (
	"context"
	"errors"

	"bobbin/app/core"
)

// Errors after Ctrl-C that ends a command, or waiting for an answer.
var (
	errStopped        = core.Errorf(core.ErrCanceled, "stopped")
	errStoppedWaiting = core.Errorf(core.ErrCanceled, "stopped waiting; if the message has arrived, the answer will appear in the conversation")
)

// runInterruptible calls do and cancels its context at the next Ctrl-C.
func (c *Conversation) runInterruptible(ctx context.Context, do func(context.Context) error) error {
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

// cancelOnInterrupt cancels the run at the first Ctrl-C after its id is known. At the second
// one, or if the run cannot be canceled, it ends ctx by calling leave. It returns when ctx
// ends.
func (v *runView) cancelOnInterrupt(ctx context.Context, leave context.CancelCauseFunc) {
	var run core.RunID
	interrupts := 0
	for {
		select {
		case run = <-v.run:
		case <-v.c.Interrupts:
			interrupts++
		case <-ctx.Done():
			return
		}
		if interrupts > 1 {
			leave(errStoppedWaiting)
			return
		}
		if interrupts == 1 && run != "" {
			if _, err := v.c.Service.CancelRun(ctx, run, false); err != nil {
				leave(errStoppedWaiting)
				return
			}
			run = "" // cancel only once
		}
	}
}
