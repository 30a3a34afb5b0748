package core

import (
	"context"
	"time"
)

// Repeat calls do until ctx ends: again after the pause that do returns, or when something comes from
// wake, which may be nil. It returns nil.
func Repeat(ctx context.Context, wake <-chan struct{}, do func(ctx context.Context) (pause time.Duration)) error {
	for ctx.Err() == nil {
		select {
		case <-time.After(do(ctx)):
		case <-wake:
		case <-ctx.Done():
		}
	}
	return nil
}

// Every calls do immediately, and then each interval, until ctx ends. It returns nil.
func Every(ctx context.Context, interval time.Duration, do func(ctx context.Context)) error {
	return Repeat(ctx, nil, func(ctx context.Context) time.Duration {
		next := time.Now().Add(interval)
		do(ctx)
		return time.Until(next)
	})
}

// Sleep waits for d, or returns the cause of ctx's end.
func Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Signal puts an element into c unless it is full: who receives is signaled already.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
