package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// keyStore remembers requests that may come again.
type keyStore interface {
	// Begin takes the key; it returns nil if it was free, or what is known of it.
	Begin(ctx context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error)
	Finish(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) error
	Release(ctx context.Context, in core.KeyedRequest) error
}

const (
	keyLife     = 24 * time.Hour
	keyWork     = 6 * time.Minute  // more than the longest transaction and the longest wait
	keyStored   = 15 * time.Second // for storing the answer
	maxKept     = 256 << 10        // bytes of an answer; a longer one is not kept
	keyReplayed = "Idempotency-Replayed"
)

// Codes of what a repeated request may be told.
const (
	codeInProgress = "request_in_progress"
	codeKeyReused  = "idempotency_key_reused"
	codeNotKept    = "answer_not_kept"
)

// once makes the repetition of a request harmless that carries an idempotency key:
// it is done once, and a repetition gets the answer of the first time.
//
// Only answers of success are kept. After an error nothing was done, so that the
// same key may be used to try again. An answer that was streamed or is too long is
// not kept, and a repetition is told so: it is never done twice.
func (s *Server) once(c *gin.Context) error {
	method := c.Request.Method
	if s.keys == nil || method != http.MethodPost && method != http.MethodPatch || asksAgent(c.FullPath()) {
		return nil
	}
	key, err := handlers.IdempotencyKey(c.Request)
	if err != nil || key == "" {
		return err
	}
	caller, _ := core.IdentityFrom(c.Request.Context())
	in := core.KeyedRequest{
		Owner: caller.Owner, Key: keyOf(caller, key), Target: method + " " + c.Request.URL.RequestURI(),
		Token: core.NewID[string](), Keep: keyLife, Work: max(keyWork, s.limits.Wait+time.Minute),
	}
	known, err := s.keys.Begin(c.Request.Context(), in)
	switch {
	case err != nil:
		return err
	case known != nil:
		return s.again(c, in, *known)
	}
	s.first(c, in)
	return nil
}

// keyOf returns the key as it is stored: every end user has keys of their own, and
// learns nothing of those of others.
func keyOf(caller core.Identity, key string) string {
	if caller.User == "" {
		return key
	}
	sum := sha256.Sum256([]byte(caller.User))
	return "user " + hex.EncodeToString(sum[:16]) + " " + key
}

// asksAgent reports whether the route takes a message that an agent answers: there
// the key stands for the client_message_id, which makes a repetition listen to the
// run of the first time.
func asksAgent(route string) bool {
	switch route {
	case messagesRoute, messageRoute, messageRoute + "/regenerate":
		return true
	}
	return false
}

// first does the request and keeps its answer.
func (s *Server) first(c *gin.Context, in core.KeyedRequest) {
	request, writer := c.Request, c.Writer
	ctx := context.WithoutCancel(request.Context())
	work := request.Context()
	if !strings.Contains(request.Header.Get("Accept"), "text/event-stream") {
		// Who goes away and comes back wants to know what came of it.
		var cancel context.CancelFunc
		work, cancel = context.WithTimeout(ctx, in.Work)
		defer cancel()
	}
	body := &hashedBody{body: request.Body, hash: sha256.New()}
	kept := &keptWriter{ResponseWriter: writer}
	c.Request, c.Writer = request.WithContext(work), kept
	c.Request.Body = body
	done := false
	defer func() {
		c.Request, c.Writer = request, writer
		if !done { // a panic
			s.release(ctx, in)
		}
	}()
	c.Next()
	done = true
	var answer *core.KeyedAnswer
	if status := kept.Status(); status >= 200 && status <= 299 {
		if hash, err := body.sum(); err == nil {
			answer = kept.answer(hash)
		}
	}
	if answer == nil {
		s.release(ctx, in)
	} else {
		s.keep(ctx, in, *answer)
	}
	kept.pass()
}

// keep stores the answer. One that cannot be stored is still given: until the key
// may be taken over, a repetition is told that the request is being worked on.
func (s *Server) keep(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) {
	ctx, cancel := context.WithTimeout(ctx, keyStored)
	defer cancel()
	if err := s.keys.Finish(ctx, in, a); err != nil {
		s.log.WarnContext(ctx, "idempotent answer not kept", slog.String("target", in.Target), slog.Any("err", err))
	}
}

func (s *Server) release(ctx context.Context, in core.KeyedRequest) {
	ctx, cancel := context.WithTimeout(ctx, keyStored)
	defer cancel()
	if err := s.keys.Release(ctx, in); err != nil {
		s.log.WarnContext(ctx, "idempotency key not released", slog.String("target", in.Target), slog.Any("err", err))
	}
}

// again answers a repetition.
func (s *Server) again(c *gin.Context, in core.KeyedRequest, known core.KeyedAnswer) error {
	c.Abort()
	if known.Status == 0 {
		return &core.Error{Kind: core.ErrConflict, Code: codeInProgress, RetryAfter: time.Second,
			Message: "a request with this Idempotency-Key is still being worked on; ask again in a moment for its answer"}
	}
	body := &hashedBody{body: c.Request.Body, hash: sha256.New()}
	hash, err := body.sum()
	if err != nil {
		return handlers.BodyFault(err)
	}
	if known.Target != in.Target || known.RequestHash != hash {
		return &core.Error{Kind: core.ErrInvalid, Code: codeKeyReused,
			Message: "this Idempotency-Key belongs to another request, to " + core.Clip(known.Target, 200) + "; take a new key for a new request",
			Fields:  []core.FieldError{{Field: "Idempotency-Key", Detail: "belongs to another request"}}}
	}
	if known.Location != "" {
		c.Header("Location", known.Location)
	}
	c.Header(keyReplayed, "true")
	if !known.Kept {
		return &core.Error{Kind: core.ErrConflict, Code: codeNotKept,
			Message: "this request was done, but its answer was too long to be kept, or was streamed: look at what it made instead of asking for it again"}
	}
	if known.ContentType == "" {
		handlers.WriteNothing(c, known.Status)
		return nil
	}
	handlers.Write(c, known.Status, known.ContentType, known.Body)
	return nil
}

// hashedBody is a body that knows the hash of what was read.
type hashedBody struct {
	body io.ReadCloser // nil = none
	hash hash.Hash
}

// Read is part of io.Reader.
func (b *hashedBody) Read(p []byte) (int, error) {
	if b.body == nil {
		return 0, io.EOF
	}
	n, err := b.body.Read(p)
	_, _ = b.hash.Write(p[:n]) // a hash takes everything
	return n, err
}

// Close is part of io.Closer. The server closes the body itself.
func (b *hashedBody) Close() error { return nil }

// sum reads the rest and returns the hash of the whole.
func (b *hashedBody) sum() (string, error) {
	if _, err := io.Copy(io.Discard, b); err != nil {
		return "", err
	}
	return hex.EncodeToString(b.hash.Sum(nil)), nil
}

// keptWriter holds an answer back until it was stored. A stream passes at once, and
// a long answer as soon as it is too long to be kept.
type keptWriter struct {
	gin.ResponseWriter
	held    bytes.Buffer
	ended   bool // the header is to be sent though there is no body
	passing bool
}

// Write is part of io.Writer.
func (w *keptWriter) Write(p []byte) (int, error) {
	stream := w.Header().Get("Content-Type") == "text/event-stream"
	if stream || w.held.Len()+len(p) > maxKept {
		w.pass()
	}
	if w.passing {
		return w.ResponseWriter.Write(p)
	}
	return w.held.Write(p)
}

// WriteString is part of io.StringWriter.
func (w *keptWriter) WriteString(text string) (int, error) { return w.Write([]byte(text)) }

// WriteHeaderNow ends an answer without a body.
func (w *keptWriter) WriteHeaderNow() {
	w.ended = true
	if w.passing {
		w.ResponseWriter.WriteHeaderNow()
	}
}

// Written reports whether the answer has begun.
func (w *keptWriter) Written() bool {
	return w.ended || w.held.Len() > 0 || w.ResponseWriter.Written()
}

// Size returns how long the answer is so far.
func (w *keptWriter) Size() int {
	if w.passing {
		return w.ResponseWriter.Size()
	}
	return w.held.Len()
}

// Flush sends what is held back.
func (w *keptWriter) Flush() {
	w.pass()
	w.ResponseWriter.Flush()
}

// Unwrap returns the writer below, for deadlines.
func (w *keptWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// pass sends what was held back; from then on everything passes.
func (w *keptWriter) pass() {
	if w.passing {
		return
	}
	w.passing = true
	switch {
	case w.held.Len() > 0:
		_, _ = w.ResponseWriter.Write(w.held.Bytes()) // who is gone comes back for it
	case w.ended:
		w.ResponseWriter.WriteHeaderNow()
	}
}

// answer returns what is kept of the answer.
func (w *keptWriter) answer(hash string) *core.KeyedAnswer {
	return &core.KeyedAnswer{
		RequestHash: hash, Status: w.Status(), ContentType: w.Header().Get("Content-Type"), Location: w.Header().Get("Location"),
		Body: w.held.Bytes(), Kept: !w.passing,
	}
}
