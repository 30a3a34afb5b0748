package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"testing"
	"testing/synctest"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// outcomes is an observer that remembers.
type outcomes struct {
	core.NoObserver
	list []string
}

func (o *outcomes) Stream() func(outcome string) {
	o.list = append(o.list, "opened")
	return func(outcome string) { o.list = append(o.list, outcome) }
}

// The observer hears how every stream ended; a reader who does not keep up is told
// from one who went away.
func TestObserver(t *testing.T) {
	t.Parallel()
	failing := func(err error) handlers.EventSource {
		return func(context.Context) iter.Seq2[core.Event, error] {
			return func(yield func(core.Event, error) bool) { yield(core.Event{}, err) }
		}
	}
	closed := make(chan core.Event)
	close(closed)
	for _, tt := range []struct {
		name   string
		source handlers.EventSource
		broken error // of the connection
		gone   error // why the request's context ends
		want   string
	}{
		{"the events end", from(closed), nil, nil, "ended"},
		{"the server stops", from(make(chan core.Event)), nil, errors.New("the server stops"), "ended"},
		{"an error", failing(errors.New("no database")), nil, nil, "failed"},
		{"dropped by the feed", failing(fmt.Errorf("watch: %w", &core.Error{Kind: core.ErrUnavailable, Code: "slow_reader"})), nil, nil, "slow"},
		{"a write takes too long", from(closed), fmt.Errorf("write tcp: %w", os.ErrDeadlineExceeded), nil, "slow"},
		{"the connection breaks", from(closed), errors.New("broken pipe"), nil, "gone"},
		{"the reader leaves", from(make(chan core.Event)), nil, context.Canceled, "gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w, told := newWriter(), &outcomes{}
				w.fail = tt.broken
				ctx, cancel := context.WithCancelCause(t.Context())
				if tt.gone != nil {
					cancel(tt.gone)
				}
				defer cancel(nil)
				_ = handlers.ServeEvents(ctx, w, tt.source, handlers.StreamOptions{Observer: told})
				if !slices.Equal(told.list, []string{"opened", tt.want}) {
					t.Errorf("told %q, want %q", told.list, tt.want)
				}
			})
		})
	}
}
