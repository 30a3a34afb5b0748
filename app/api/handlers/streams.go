package handlers

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// errDrain is why feeds end when the server stops.
var errDrain = errors.New("the server is stopping")

// Streams counts the requests that are held open and serves events on them. Safe
// for concurrent use.
type Streams struct {
	limits Limits
	frames *sse.Frames

	mu       sync.Mutex
	draining bool                // guarded by mu
	held     map[*place]struct{} // guarded by mu
	callers  map[string]int      // held requests by owner, and by owner and user; guarded by mu
}

// place is that of one held request.
type place struct {
	caller  core.Identity
	endless bool                    // it never ends by itself
	end     context.CancelCauseFunc // nil = no stream; guarded by Streams.mu
}

// NewStreams returns streams within the limits.
func NewStreams(limits Limits) *Streams {
	return &Streams{limits: limits, frames: sse.NewFrames(), held: map[*place]struct{}{}, callers: map[string]int{}}
}

// hold takes one of the places for held requests. The caller gives it back by
// release. It is taken before anything is done for the request, so that nothing
// is done for one that cannot be answered.
func (s *Streams) hold(c *gin.Context) (*place, error) {
	p := &place{caller: callerOf(c)}
	owner, user := p.buckets()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.held) >= s.limits.Streams {
		return nil, &core.Error{Kind: core.ErrUnavailable, Code: "too_many_streams", RetryAfter: 5 * time.Second,
			Message: "the server holds as many open requests as it may; try again later"}
	}
	if s.callers[owner] >= s.limits.StreamsPerOwner || user != "" && s.callers[user] >= s.limits.StreamsPerUser {
		return nil, &core.Error{Kind: core.ErrRateLimited, Code: "too_many_streams", RetryAfter: 5 * time.Second,
			Message: "you hold as many open requests as you may; close some"}
	}
	s.held[p] = struct{}{}
	s.callers[owner]++
	if user != "" {
		s.callers[user]++
	}
	return p, nil
}

// buckets names what the caller's held requests are counted by: the owner, and the user
// if the caller is one.
func (p *place) buckets() (owner, user string) {
	owner = p.caller.Owner
	if p.caller.User != "" {
		user = owner + "\x00" + p.caller.User
	}
	return owner, user
}

// release gives the place back.
func (s *Streams) release(p *place) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, p)
	owner, user := p.buckets()
	for _, bucket := range []string{owner, user} {
		if s.callers[bucket]--; s.callers[bucket] <= 0 {
			delete(s.callers, bucket)
		}
	}
}

// Drain ends the feeds of sessions, and those that begin from now on, since they would
// never end by themselves; the streams of runs go on to the end of their run.
func (s *Streams) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining = true
	for p := range s.held {
		if p.endless && p.end != nil {
			p.end(errDrain)
		}
	}
}

// Keys returns the keys of the database whose holders have streams open.
func (s *Streams) Keys() []core.KeyID {
	s.mu.Lock()
	defer s.mu.Unlock()
	keys := map[core.KeyID]struct{}{}
	for p := range s.held {
		if p.end != nil && p.caller.KeyID != "" {
			keys[p.caller.KeyID] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(keys))
}

// End ends the streams of the keys; their readers are told why.
func (s *Streams) End(keys map[core.KeyID]error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for p := range s.held {
		if why := keys[p.caller.KeyID]; why != nil && p.end != nil {
			p.end(why)
		}
	}
}

// session serves a feed that ends only with its reader or with the server. It begins
// after the event of that number, which the reader is told: one who loses the connection
// before there is another comes back with it.
func (s *Streams) session(c *gin.Context, p *place, after int64, source sse.Source) error {
	p.endless = true
	number := strconv.FormatInt(after, 10)
	c.Header("Last-Event-ID", number)
	return s.serve(c, p, number, source)
}

// run serves events that end by themselves.
func (s *Streams) run(c *gin.Context, p *place, source sse.Source) error {
	return s.serve(c, p, "", source)
}

func (s *Streams) serve(c *gin.Context, p *place, id string, source sse.Source) error {
	ctx, cancel := context.WithCancelCause(c.Request.Context())
	defer cancel(nil)
	s.begin(p, cancel)
	if until := p.caller.Expires; !until.IsZero() {
		limited, stop := context.WithDeadlineCause(ctx, until, expired())
		defer stop()
		ctx = limited
	}
	opts := s.limits.Stream
	opts.Frames, opts.ID = s.frames, id
	err := sse.Serve(ctx, c.Writer, seenEvents(p.caller, source), opts)
	var refused *core.Error
	if cause := context.Cause(ctx); err == nil && c.Request.Context().Err() == nil && errors.As(cause, &refused) {
		return cause // why the stream was ended, which the reader is told
	}
	return err
}

// expired is why the stream of an end user ends.
func expired() error {
	return &core.Error{Kind: core.ErrUnauthorized, Code: core.CodeTokenExpired,
		Message: "the token has expired; come back with a new one and Last-Event-ID"}
}

// begin makes a held request a stream that can be ended.
func (s *Streams) begin(p *place, end context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p.end = end
	if s.draining && p.endless {
		end(errDrain)
	}
}

// wantsStream reports whether the caller asks for server-sent events.
func wantsStream(h http.Header) bool {
	for _, header := range h.Values("Accept") {
		for media := range strings.SplitSeq(header, ",") {
			name, params, _ := strings.Cut(media, ";")
			refused := strings.HasPrefix(strings.ReplaceAll(params, " ", ""), "q=0") && !strings.ContainsAny(params, "123456789")
			if strings.EqualFold(strings.TrimSpace(name), "text/event-stream") && !refused {
				return true
			}
		}
	}
	return false
}

// resumeAfter returns the number of the event after which the caller wants to
// begin: that of the header Last-Event-ID, which a browser sends when it comes
// back, else ?after=, for those that cannot set headers. Without either it is false.
func resumeAfter(c *gin.Context) (after int64, given bool, err error) {
	q := readQuery(c, "after")
	after = q.number("after")
	if err := q.err(); err != nil {
		return 0, false, err
	}
	if text := c.GetHeader("Last-Event-ID"); text != "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n < 0 {
			return 0, false, invalid([]core.FieldError{{Field: "Last-Event-ID", Detail: "must be the id of an event, a whole number"}})
		}
		return n, true, nil
	}
	return after, q.text("after") != "", nil
}

// preference is what the header Prefer asks for (RFC 7240).
type preference struct {
	async bool          // respond-async: do not wait
	wait  time.Duration // wait=n: at most so long; 0 = not said
}

func readPreference(h http.Header) preference {
	var p preference
	for _, header := range h.Values("Prefer") {
		for word := range strings.SplitSeq(header, ",") {
			name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
			switch strings.ToLower(name) {
			case "respond-async":
				p.async = true
			case "wait":
				// A preference that cannot be read is ignored, as the RFC says.
				if n, err := strconv.Atoi(value); err == nil && n > 0 && n <= 24*60*60 {
					p.wait = time.Duration(n) * time.Second
				}
			}
		}
	}
	return p
}
