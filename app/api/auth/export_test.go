package auth

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"
)

// HangingKeys returns keys from a server that stops answering after hang.
func HangingKeys(jwks []byte) (keys *Keys, hang func()) {
	var mu sync.Mutex
	hangs := false
	keys = NewKeys(KeyOptions{Logger: slog.New(slog.DiscardHandler)})
	keys.fetch = func(ctx context.Context) ([]byte, error) {
		mu.Lock()
		wait := hangs
		mu.Unlock()
		if wait {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return jwks, nil
	}
	return keys, func() {
		mu.Lock()
		defer mu.Unlock()
		hangs = true
	}
}

// CountingKeys returns keys from a server that fails until answer is called, and the times
// of the fetches since the call.
func CountingKeys(refresh time.Duration, log *slog.Logger) (keys *Keys, at func() []time.Duration, answer func([]byte)) {
	var mu sync.Mutex
	var jwks []byte
	var times []time.Duration
	begin := time.Now()
	keys = NewKeys(KeyOptions{Refresh: refresh, Logger: log})
	keys.fetch = func(context.Context) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		times = append(times, time.Since(begin))
		if jwks == nil {
			return nil, errors.New("no network")
		}
		return jwks, nil
	}
	return keys, func() []time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return times
		}, func(data []byte) {
			mu.Lock()
			defer mu.Unlock()
			jwks = data
		}
}
