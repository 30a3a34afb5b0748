package core

import (
	"context"
	"time"
)

// KeyedRequest is a request that carries an idempotency key.
type KeyedRequest struct {
	Owner  string
	Key    string
	Sent   string        // the key as the client sent it: with a message of a session it is that one's client_message_id
	Target string        // method, path and query
	Token  string        // of this execution: only it may commit a result, finish or release the key; empty = the commit takes the key
	Keep   time.Duration // how long the key is known
	Work   time.Duration // how long the request may be worked on; after it another may take the key over
}

// KeyedAnswer is what is known of an earlier request with the same key.
type KeyedAnswer struct {
	Target      string
	RequestHash string       // of the body
	Result      *KeyedResult // committed by an execution whose answer is not known; nil = none
	Status      int          // 0 = it is still being worked on
	ContentType string
	Location    string
	Body        []byte
	Kept        bool // false = it was answered, but the answer was not kept
}

// KeyedResult is what a request with an idempotency key has committed. It is stored by
// the transaction that commits the effect, so that a later execution knows of the effect
// although the answer, or even the outcome of the COMMIT, got lost.
type KeyedResult struct {
	RequestHash string // of the body
	Name        string // what the writer finds its effect by, such as an id
}

// KeyedWork is one execution of a request with an idempotency key.
type KeyedWork struct {
	Request KeyedRequest
	// BodyHash returns the hash of the request's body. It reads what is left of it.
	BodyHash func() (string, error)
	// Result is what an earlier execution has committed: this one only answers. Nil =
	// nothing.
	Result *KeyedResult
}

type keyedWorkKey struct{}

// WithKeyedWork returns a context that carries the execution.
func WithKeyedWork(ctx context.Context, w KeyedWork) context.Context {
	return context.WithValue(ctx, keyedWorkKey{}, w)
}

// WithoutKeyedWork returns ctx for what goes on when the request has been answered.
func WithoutKeyedWork(ctx context.Context) context.Context {
	return context.WithValue(ctx, keyedWorkKey{}, nil)
}

// KeyedWorkFrom returns the execution that ctx carries, and false if its request has no
// idempotency key.
func KeyedWorkFrom(ctx context.Context) (KeyedWork, bool) {
	w, ok := ctx.Value(keyedWorkKey{}).(KeyedWork)
	return w, ok
}

// CommittedResult returns the name of what an earlier execution of the request of ctx has
// committed; committed is false if there is nothing. A request with another body is
// ErrInvalid.
func CommittedResult(ctx context.Context) (name string, committed bool, err error) {
	w, ok := KeyedWorkFrom(ctx)
	if !ok || w.Result == nil {
		return "", false, nil
	}
	hash, err := w.BodyHash()
	if err != nil {
		return "", false, err
	}
	if hash != w.Result.RequestHash {
		return "", false, KeyReused(w.Request.Target)
	}
	return w.Result.Name, true, nil
}

// Codes of what a repeated request may be told.
const (
	CodeKeyReused  = "idempotency_key_reused"
	CodeInProgress = "request_in_progress"
)

// KeyReused returns the ErrInvalid for an idempotency key that belongs to another
// request, to the target.
func KeyReused(target string) error {
	return &Error{Kind: ErrInvalid, Code: CodeKeyReused,
		Message: "this Idempotency-Key belongs to another request, to " + Clip(target, 200) + "; take a new key for a new request",
		Fields:  []FieldError{{Field: "Idempotency-Key", Detail: "belongs to another request"}}}
}

// KeyInProgress returns the ErrConflict for an idempotency key that another execution of
// the request holds.
func KeyInProgress() error {
	return &Error{Kind: ErrConflict, Code: CodeInProgress, RetryAfter: time.Second,
		Message: "a request with this Idempotency-Key is still being worked on; ask again in a moment for its answer"}
}
