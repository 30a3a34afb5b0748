package apitest

import (
	"context"
	"sync"

	"bobbin/app/core"
)

// Keys is idempotency keys in memory; the zero value is ready.
type Keys struct {
	mu    sync.Mutex
	known map[[2]string]core.KeyedAnswer // by owner and key; guarded by mu
}

// Begin acquires the key.
func (k *Keys) Begin(_ context.Context, in core.KeyedRequest) (*core.KeyedAnswer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.known[[2]string{in.Owner, in.Key}]; ok {
		return &a, nil
	}
	if k.known == nil {
		k.known = map[[2]string]core.KeyedAnswer{}
	}
	k.known[[2]string{in.Owner, in.Key}] = core.KeyedAnswer{Target: in.Target}
	return nil, nil
}

// Check returns core.KeyReused if a request with another target has the key.
func (k *Keys) Check(_ context.Context, in core.KeyedRequest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if a, ok := k.known[[2]string{in.Owner, in.Key}]; ok && a.Target != in.Target {
		return core.KeyReused(a.Target)
	}
	return nil
}

// Finish stores the answer.
func (k *Keys) Finish(_ context.Context, in core.KeyedRequest, a core.KeyedAnswer) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	a.Target, a.Body = in.Target, append([]byte{}, a.Body...)
	if !a.Kept {
		a.Body = nil
	}
	k.known[[2]string{in.Owner, in.Key}] = a
	return nil
}

// Release frees the key.
func (k *Keys) Release(_ context.Context, in core.KeyedRequest) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.known, [2]string{in.Owner, in.Key})
	return nil
}
