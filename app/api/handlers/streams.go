package handlers

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// errDrain is the cause of session streams that end because the server stops.
var errDrain = errors.New("the server is stopping")

// StreamLimiter limits the open requests, which are streams and waiting requests, and
// serves events. Safe for concurrent use.
type StreamLimiter struct {
	Limits
	places *quota.Quota // of open requests

	mu       sync.Mutex
	draining bool                              // guarded by mu
	streams  map[*slot]context.CancelCauseFunc // what ends them; guarded by mu
}

// slot belongs to one open request.
type slot struct {
	*quota.Hold
	caller  core.Identity
	endless bool // the stream never ends by itself
}

// NewStreamLimiter returns a limiter without open requests.
func NewStreamLimiter(limits Limits) *StreamLimiter {
	limits.Stream.Heartbeat = cmp.Or(limits.Stream.Heartbeat, defaultHeartbeat)
	return &StreamLimiter{Limits: limits, streams: map[*slot]context.CancelCauseFunc{}, places: quota.New(quota.Limits{
		Total: int64(limits.Streams), Owner: int64(limits.StreamsPerOwner), User: int64(limits.StreamsPerUser), Equal: true,
		What: "open requests", Code: "too_many_streams", Retry: 5 * time.Second,
	})}
}

// acquireSlot acquires a slot, which the caller releases. Handlers call it before they change anything, so
// that no work is done for a request that cannot be answered.
func (s *StreamLimiter) acquireSlot(ctx context.Context) (*slot, error) {
	p := &slot{caller: callerOf(ctx)}
	p.Hold = s.places.Hold(p.caller.Tenant())
	return p, p.Grow(1)
}

// Drain ends the streams of sessions, also those that start later, since they never end by
// themselves; the streams of runs continue to the end of their run.
func (s *StreamLimiter) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for p, end := range s.streams {
		if p.endless {
			end(errDrain)
		}
	}
}

// Keys returns the stored API keys with open streams.
func (s *StreamLimiter) Keys() []core.KeyID {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[core.KeyID]struct{}{}
	for p := range s.streams {
		if p.caller.KeyID != "" {
			keys[p.caller.KeyID] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// End ends the streams of the keys, with the error for their readers.
func (s *StreamLimiter) End(keys map[core.KeyID]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p, end := range s.streams {
		if why := keys[p.caller.KeyID]; why != nil {
			end(why)
		}
	}
}

// RunStream streams the events of a run, as the encoder writes them.
type RunStream func(source EventSource, encode Encoder) error

// WithSlot calls f with a slot for the open request. It fails before f changes anything if there
// is none.
func (s *StreamLimiter) WithSlot(c *gin.Context, f func(stream RunStream) error) error {
	held, err := s.acquireSlot(c.Request.Context())
	if err != nil {
		return err
	}
	defer held.Release()
	return f(func(source EventSource, encode Encoder) error {
		opts := s.Stream
		opts.Encode = encode
		return s.serveEvents(c, held, opts, source)
	})
}

func (s *StreamLimiter) serveEvents(c *gin.Context, p *slot, opts StreamOptions, source EventSource) error {
	HoldOf(c).Release() // a stream may last for minutes
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	s.mu.Lock()
	s.streams[p] = cancel // from here on Drain and End can end it
	if s.draining && p.endless {
		cancel(errDrain)
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, p)
	}()
	if until := p.caller.Expires; !until.IsZero() {
		limited, stop := context.WithDeadlineCause(ctx, until, &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired,
			Message: "the token has expired; reconnect with a new token and Last-Event-ID"})
		defer stop()
		ctx = limited
	}
	err := ServeEvents(ctx, c.Writer, s.shownEvents(p, source), opts)
	var refused *core.Error
	if cause := context.Cause(ctx); err == nil && c.Request.Context().Err() == nil && errors.As(cause, &refused) {
		return cause // the reader gets it as an error event
	}
	return err
}

// shownEvents returns the events as the slot's caller may see them. It releases the slot of a run's stream
// before the reader sees that the run has ended: the reader's next request finds it free.
func (s *StreamLimiter) shownEvents(p *slot, source EventSource) EventSource {
	return func(ctx context.Context) iter.Seq2[core.Event, error] {
		return func(yield func(core.Event, error) bool) {
			for e, err := range source(ctx) {
				shown := true
				if err == nil && p.caller.User != "" {
					e, shown, err = userEvent(e)
				}
				if !p.endless && e.Type.EndsRun() {
					p.Release()
				}
				if (shown || err != nil) && !yield(e, err) {
					return
				}
			}
		}
	}
}

// Accepts reports whether the header, such as Accept-Encoding, names the value without refusing it by q=0.
func Accepts(h http.Header, header, value string) bool {
	for _, list := range h.Values(header) {
		for item := range strings.SplitSeq(list, ",") {
			name, params, _ := strings.Cut(strings.ToLower(item), ";")
			refused := strings.HasPrefix(strings.ReplaceAll(params, " ", ""), "q=0") && !strings.ContainsAny(params, "123456789")
			if strings.TrimSpace(name) == value && !refused {
				return true
			}
		}
	}
	return false
}

// resumeAfter returns the number of the event after which the stream starts: from the
// header Last-Event-ID, which browsers send when they reconnect, else from ?after=, for
// clients that cannot set headers. given is false without either.
func resumeAfter(c *gin.Context, in ops.Resume) (after int64, given bool, err error) {
	if text := c.GetHeader("Last-Event-ID"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, false, core.OneFault("Last-Event-ID", "must be the id of an event, a whole number")
		}
		return n, true, nil
	}
	if in.After == nil {
		return 0, false, nil
	}
	return *in.After, true, nil
}

// readPreference returns what the header Prefer asks for (RFC 7240): not to wait, and the longest wait; 0 = not given.
func readPreference(h http.Header) (async bool, wait time.Duration) {
	for _, header := range h.Values("Prefer") {
		for word := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			switch strings.ToLower(name) {
			case "respond-async":
				async = true
			case "wait":
				// An invalid preference is ignored, as the RFC says.
				if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= 24*60*60 {
					wait = time.Duration(n) * time.Second
				}
			}
		}
	}
	return async, wait
}
