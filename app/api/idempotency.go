package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// keyStore stores idempotency keys and the answers to their requests.
type keyStore interface {
	// Begin acquires the key. It returns nil if the key was free, else what is stored.
	Begin(ctx context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error)
	// Finish stores the answer.
	Finish(ctx context.Context, in core.KeyedRequest, a core.KeyedAnswer) error
	// Release frees the key unless its request has committed a result.
	Release(ctx context.Context, in core.KeyedRequest) error
	// Check returns core.KeyReused if another request has the key. It acquires nothing.
	Check(ctx context.Context, in core.KeyedRequest) error
}

const (
	minKeyWork      = 6 * time.Minute  // more than the longest transaction and the longest wait
	keyStoreTimeout = 15 * time.Second // for storing the answer
	maxKeptBytes    = 4 << 10          // of an answer: it counts in no limit
	keyReplayed     = "Idempotency-Replayed"
)

// codeNotKept means that the request was executed but its answer was not stored.
const codeNotKept = "answer_not_kept"

// idempotent executes a request with an idempotency key once; repetitions get the first
// answer.
//
// Only successful answers are stored. After an error the key is released for a retry,
// unless the request committed a result all the same, because its COMMIT or a later step
// failed. Then a repetition is executed again and uses the committed result. The same
// holds after a crash, for an answer that is too long to be stored, and for one of which something
// was deleted. Without a result a repetition gets an error then; it is never executed twice.
func (s *Server) idempotent(c *gin.Context) error {
	method := c.Request.Method
	if method != http.MethodPost && method != http.MethodPatch {
		return nil
	}
	key, err := handlers.IdempotencyKey(c.Request)
	if err != nil || key == "" {
		return err
	}
	in := handlers.KeyedRequest(c, key)
	if asksAgent(c.FullPath()) {
		return s.Keys.Check(c.Request.Context(), in)
	}
	in.Token, in.Work = core.NewID[string](), max(minKeyWork, s.Limits.Wait+time.Minute)
	known, err := s.Keys.Begin(c.Request.Context(), in)
	switch {
	case err != nil:
		return err
	case known == nil:
		s.executeKeyed(c, in, nil)
		return nil
	case known.Result != nil && known.Target == in.Target:
		c.Header(keyReplayed, "true")
		s.executeKeyed(c, in, known.Result)
		return nil
	default:
		c.Abort()
		if known.Status == 0 && known.Result == nil {
			return core.KeyInProgress()
		}
		hash, err := hashBody(c.Request)()
		if err != nil {
			return err
		}
		if known.Target != in.Target || known.RequestHash != hash {
			return core.KeyReused(known.Target)
		}
		if known.Location != "" {
			c.Header("Location", known.Location)
		}
		c.Header(keyReplayed, "true")
		if !known.Kept {
			return &core.Error{Kind: core.ErrConflict, Code: codeNotKept,
				Message: "this request was executed, but its answer is not stored: read what it created instead of repeating it"}
		}
		handlers.Write(c, known.Status, known.ContentType, known.Body)
		return nil
	}
}

func refuseKey(c *gin.Context) error {
	if c.Request.Method == http.MethodPost && len(c.Request.Header.Values("Idempotency-Key")) > 0 {
		return core.Errorf(core.ErrInvalid, "a deletion takes no Idempotency-Key, because a stored response would be a trace of the deleted data: send it without one; a repetition gets the same deletion")
	}
	return nil
}

// asksAgent reports whether the route takes a message that an agent answers: there the
// key serves as client_message_id, and a repetition follows the first run.
func asksAgent(route string) bool {
	switch route {
	case messagesRoute, messageRoute, messageRoute + "/regenerate", openAIPrefix + "chat/completions", openAIPrefix + "responses":
		return true
	}
	return false
}

// executeKeyed executes the request and stores its answer. With a result that an earlier
// execution committed, it only answers.
func (s *Server) executeKeyed(c *gin.Context, in core.KeyedRequest, result *core.KeyedResult) {
	request, writer := c.Request, c.Writer
	ctx := context.WithoutCancel(request.Context())
	work, cancel := context.WithTimeout(ctx, in.Work) // without its client, which may come back for the answer
	defer cancel()
	hashAll := hashBody(request)
	work = core.WithKeyedWork(work, core.KeyedWork{Request: in, BodyHash: hashAll, Result: result})
	kept := &answerRecorder{ResponseWriter: writer}
	c.Request, c.Writer = request.WithContext(work), kept
	done := false
	defer func() {
		c.Request, c.Writer = request, writer
		if !done { // a panic
			s.settleKey(ctx, in, nil)
		}
	}()
	c.Next()
	done = true
	var answer *core.KeyedAnswer
	if status := kept.Status(); status >= 200 && status <= 299 {
		if hash, err := hashAll(); err == nil {
			answer = &core.KeyedAnswer{
				RequestHash: hash, Status: status, ContentType: kept.Header().Get("Content-Type"), Location: kept.Header().Get("Location"),
				Body: kept.buffered.Bytes(), Kept: !kept.passing,
			}
		}
	}
	if answer == nil {
		kept.Header().Del(keyReplayed)
	}
	s.settleKey(ctx, in, answer)
	kept.passThrough()
}

// settleKey stores the answer, or frees the key if there is none or it cannot be stored. The caller gets an
// answer that was not stored all the same: a repetition finds the result, or is executed again. If storage
// fails, the key expires by itself.
func (s *Server) settleKey(ctx context.Context, in core.KeyedRequest, answer *core.KeyedAnswer) {
	ctx, cancel := context.WithTimeout(ctx, keyStoreTimeout)
	defer cancel()
	if answer != nil {
		err := s.Keys.Finish(ctx, in, *answer)
		if err == nil {
			return
		}
		s.Logger.WarnContext(ctx, "idempotent answer not stored", slog.String("target", in.Target), slog.Any("err", err))
	}
	if err := s.Keys.Release(ctx, in); err != nil {
		s.Logger.WarnContext(ctx, "idempotency key not released", slog.String("target", in.Target), slog.Any("err", err))
	}
}

// hashBody has the request's body hashed as it is read. The function that it returns reads the rest and
// returns the hash of the whole body.
func hashBody(r *http.Request) func() (string, error) {
	sum := sha256.New()
	body := io.TeeReader(r.Body, sum)
	r.Body = io.NopCloser(body) // the server closes the body itself
	return func() (string, error) {
		if _, err := io.Copy(io.Discard, body); err != nil {
			return "", handlers.BodyError(err)
		}
		return hex.EncodeToString(sum.Sum(nil)), nil
	}
}

// answerRecorder buffers an answer, a JSON text that is written by Write, until it is stored. A long one
// passes through as soon as it is too long to be stored.
type answerRecorder struct {
	gin.ResponseWriter
	buffered bytes.Buffer
	passing  bool
}

// Write is part of io.Writer.
func (w *answerRecorder) Write(p []byte) (int, error) {
	if w.buffered.Len()+len(p) > maxKeptBytes {
		w.passThrough()
	}
	if w.passing {
		return w.ResponseWriter.Write(p)
	}
	return w.buffered.Write(p)
}

// Written reports whether the answer has begun.
func (w *answerRecorder) Written() bool { return w.buffered.Len() > 0 || w.ResponseWriter.Written() }

// Unwrap returns the writer below, for deadlines.
func (w *answerRecorder) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// passThrough sends what is buffered; from then on writes go straight through.
func (w *answerRecorder) passThrough() {
	if !w.passing {
		w.passing = true
		_, _ = w.ResponseWriter.Write(w.buffered.Bytes()) // a client that is gone repeats the request
	}
}
