package api

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/api/sse"
	"bobbin/app/core"
)

// Limits bound what one request may take. A zero field stands for its default.
type Limits struct {
	BodyBytes       int64         // 8 MiB; a message of 1 MiB may be six times as long in JSON
	ImportBytes     int64         // of a history's body: 64 MiB
	FileBytes       int64         // of a file: 20 MiB
	FilesPerMessage int           // 8
	HeaderBytes     int           // 64 KiB
	ReadHeader      time.Duration // for the request's header: 10 s
	ReadBody        time.Duration // for its body: 30 s
	Idle            time.Duration // of a connection between two requests: 2 min
	Write           time.Duration // for one frame of a stream: 10 s
	Heartbeat       time.Duration // of a stream: 15 s
	Start           time.Duration // a request waits so long for the start to be over: 10 s
	Wait            time.Duration // a waiting request is held so long: 5 min
	Streams         int           // requests that are held open, of all callers: 8,192
	StreamsPerOwner int           // of one owner: 4,096
	StreamsPerUser  int           // of one user, where the caller is one: 32
	Grace           time.Duration // for requests in hand when the server stops: 35 s
	PerSecond       int           // requests of one key, ten times as many at once; here 0 is no limit
	UserPerSecond   int           // the same of one end user
}

// withDefaults returns the limits with no field zero.
func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes:       or(l.BodyBytes, 8<<20),
		ImportBytes:     or(l.ImportBytes, 64<<20),
		FileBytes:       or(l.FileBytes, 20<<20),
		FilesPerMessage: or(l.FilesPerMessage, 8),
		HeaderBytes:     or(l.HeaderBytes, 64<<10),
		ReadHeader:      or(l.ReadHeader, 10*time.Second),
		ReadBody:        or(l.ReadBody, 30*time.Second),
		Idle:            or(l.Idle, 2*time.Minute),
		Write:           or(l.Write, 10*time.Second),
		Heartbeat:       or(l.Heartbeat, 15*time.Second),
		Start:           or(l.Start, 10*time.Second),
		Wait:            or(l.Wait, 5*time.Minute),
		Streams:         or(l.Streams, 8192),
		StreamsPerOwner: or(l.StreamsPerOwner, 4096),
		StreamsPerUser:  or(l.StreamsPerUser, 32),
		Grace:           or(l.Grace, 35*time.Second),
		PerSecond:       l.PerSecond,
		UserPerSecond:   l.UserPerSecond,
	}
}

// or returns v if it is a limit, else the default.
func or[T int | int64 | time.Duration](v, otherwise T) T {
	if v > 0 {
		return v
	}
	return otherwise
}

// held returns the limits of requests that are held open.
func (s *Server) held() handlers.Limits {
	l := s.limits
	return handlers.Limits{
		Wait: l.Wait, Streams: l.Streams, StreamsPerOwner: l.StreamsPerOwner, StreamsPerUser: l.StreamsPerUser,
		Stream: sse.Options{Heartbeat: l.Heartbeat, WriteTimeout: l.Write, Observer: s.watch},
	}
}

// slowestUpload is how fast a long body must come at least, in bytes a second.
const slowestUpload = 256 << 10

// formBytes is what a form may have besides its files and its message.
const formBytes = 64 << 10

// body returns how long the body of a request to the route may be, and take. A form
// may have files.
func (l Limits) body(route string, form bool) (bytes int64, within time.Duration) {
	most := l.BodyBytes
	switch {
	case route == importRoute:
		most = max(most, l.ImportBytes)
	case route == blobsRoute:
		most = l.FileBytes + formBytes
	case form && (route == messagesRoute || route == messageRoute):
		most += int64(l.FilesPerMessage)*l.FileBytes + formBytes
	default:
		return most, l.ReadBody
	}
	return most, l.ReadBody + time.Duration(most/slowestUpload)*time.Second
}

// limitBody bounds the request's body in length and time. The time limit cannot
// be the server's: that one would go on after the body was read, and end streams.
func (s *Server) limitBody(c *gin.Context) error {
	r := c.Request
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	most, within := s.limits.body(c.FullPath(), strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data"))
	if r.ContentLength > most {
		return core.Errorf(core.ErrTooLarge, "the body is larger than %d bytes", most)
	}
	control := http.NewResponseController(c.Writer)
	// Writers that know no deadlines are those of tests.
	_ = control.SetReadDeadline(time.Now().Add(within))
	r.Body = &timedBody{
		ReadCloser: http.MaxBytesReader(serverWriter(c.Writer), r.Body, most),
		done:       func() { _ = control.SetReadDeadline(time.Time{}) },
	}
	return nil
}

// serverWriter returns the server's own writer, which MaxBytesReader tells to
// close the connection.
func serverWriter(w gin.ResponseWriter) http.ResponseWriter {
	if u, ok := w.(interface{ Unwrap() http.ResponseWriter }); ok {
		return u.Unwrap()
	}
	return w
}

// timedBody calls done when the body has been read.
type timedBody struct {
	io.ReadCloser
	done func()
}

// Read reads on; at the end of the body its time limit ends too.
func (b *timedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		b.done()
	}
	return n, err
}
