package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// How fast a body must arrive.
const (
	minUploadRate = 256 << 10        // bytes per second on average, for bodies that may be large
	minBodyRate   = 32 << 10         // bytes per second at any moment
	maxBodyLag    = 10 * time.Second // how far a body may fall behind minBodyRate
)

// formBytes is the size of a form besides its files and its message.
const formBytes = 64 << 10

// slackBytes is more than the handler of Slack's requests reads of a body: it has a limit of
// its own, and says so in Slack's way.
const slackBytes = 8 << 20

// slackTime is how long the body of a request of Slack may take: Slack gives up after 3 s, and
// until its signature is verified anybody may have sent it.
const slackTime = 3 * time.Second

// OpenAIFactor is how many times larger than others a body with a whole conversation may be.
const OpenAIFactor = 4

// bodyLimits returns how large the body of a request to the route may be, and how long it
// may take. A form may have files.
func (l Limits) bodyLimits(route string, form bool) (maxBytes int64, timeLimit time.Duration) {
	maxBytes = l.BodyBytes
	switch {
	case route == importRoute:
		maxBytes = max(maxBytes, l.ImportBytes)
	case strings.HasPrefix(route, slackRoute):
		return slackBytes, slackTime
	case strings.HasPrefix(route, openAIPrefix): // whole conversations
		maxBytes = OpenAIFactor * l.BodyBytes
	case route == blobsRoute:
		maxBytes = l.FileBytes + formBytes
	case form && (route == messagesRoute || route == messageRoute):
		maxBytes = l.BodyBytes + int64(l.FilesPerMessage)*l.FileBytes + formBytes
	default:
		return maxBytes, l.ReadBody
	}
	return maxBytes, l.ReadBody + time.Duration(maxBytes/minUploadRate)*time.Second
}

// limitBody bounds the request's body in size and time. The server's own read timeout
// cannot do this: it would continue after the body was read and end streams.
func (s *Server) limitBody(c *gin.Context) error {
	r := c.Request
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	maxBytes, timeLimit := s.Limits.bodyLimits(c.FullPath(), strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data"))
	if r.ContentLength > maxBytes {
		err := core.Errorf(core.ErrTooLarge, "the body is larger than %d bytes", maxBytes)
		if c.FullPath() == importRoute {
			return handlers.HistoryTooLarge(err)
		}
		return err
	}
	b := &body{
		ReadCloser: http.MaxBytesReader(handlers.ServerWriter(c.Writer), r.Body, maxBytes),
		control:    http.NewResponseController(c.Writer), timeLimit: timeLimit,
	}
	// Only the writers of tests do not support deadlines.
	_ = b.control.SetReadDeadline(time.Now().Add(timeLimit)) // also for bodies that are never read
	r.Body = b
	return nil
}

// body is the body of a request. It must arrive within a time limit, and it may never fall
// behind the minimum rate by more than maxBodyLag, however fast it came before.
type body struct {
	io.ReadCloser
	control   *http.ResponseController
	timeLimit time.Duration
	deadline  time.Time     // timeLimit after the first read
	lag       time.Duration // how far the body is behind minBodyRate
}

// Read is part of io.Reader. At the end of the body it removes the deadline.
func (b *body) Read(p []byte) (int, error) {
	begin := time.Now()
	if b.deadline.IsZero() {
		b.deadline = begin.Add(b.timeLimit)
	}
	_ = b.control.SetReadDeadline(begin.Add(min(maxBodyLag-b.lag, b.deadline.Sub(begin))))
	n, err := b.ReadCloser.Read(p)
	b.lag = max(0, b.lag+time.Since(begin)-time.Duration(n)*time.Second/minBodyRate)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// reserveMemory charges what the request reads and answers to its caller's share of
// memory. GET requests wait until memory is free, unless the response is an event stream.
func (s *Server) reserveMemory(c *gin.Context) error {
	ctx := c.Request.Context()
	caller, _ := core.IdentityFrom(ctx)
	hold := s.Space.Memory.Hold(caller.Tenant())
	defer hold.Release()
	if c.Request.Method == http.MethodGet && !strings.HasSuffix(c.FullPath(), "/events") {
		if err := hold.Resize(ctx, handlers.AnswerBytes); err != nil {
			return err
		}
	}
	handlers.Charge(c, s.Space, hold)
	c.Next()
	return nil
}
