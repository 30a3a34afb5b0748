package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// Streams counts the requests that are held open and serves events on them. Safe
// for concurrent use.
type Streams struct {
	limits Limits
	drain  <-chan struct{}

	mu     sync.Mutex
	held   int            // guarded by mu
	owners map[string]int // held requests by owner; guarded by mu
}

// NewStreams returns streams within the limits. When drain is closed the feeds
// of sessions end, since they would never do by themselves; the streams of runs
// go on to the end of their run.
func NewStreams(limits Limits, drain <-chan struct{}) *Streams {
	return &Streams{limits: limits, drain: drain, owners: map[string]int{}}
}

// hold takes one of the places for held requests. The caller gives it back by
// release. It is taken before anything is done for the request, so that nothing
// is done for one that cannot be answered.
func (s *Streams) hold(owner string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held >= s.limits.Streams {
		return nil, &core.Error{Kind: core.ErrUnavailable, Code: "too_many_streams", RetryAfter: 5 * time.Second,
			Message: "the server holds as many open requests as it may; try again later"}
	}
	if s.owners[owner] >= s.limits.StreamsPerOwner {
		return nil, &core.Error{Kind: core.ErrRateLimited, Code: "too_many_streams", RetryAfter: 5 * time.Second,
			Message: "you hold as many open requests as you may; close some"}
	}
	s.held++
	s.owners[owner]++
	return sync.OnceFunc(func() { s.release(owner) }), nil
}

func (s *Streams) release(owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held--
	s.owners[owner]--
	if s.owners[owner] == 0 {
		delete(s.owners, owner)
	}
}

// session serves a feed that ends only with its reader or with the server.
func (s *Streams) session(c *gin.Context, source sse.Source) error {
	opts := s.limits.Stream
	opts.Stop = s.drain
	return sse.Serve(c.Request.Context(), c.Writer, source, opts)
}

// run serves events that end by themselves.
func (s *Streams) run(c *gin.Context, source sse.Source) error {
	return sse.Serve(c.Request.Context(), c.Writer, source, s.limits.Stream)
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
