package auth

import (
	"context"
	"log/slog"
	"time"
)

// KeysFrom returns the keys that fetch gets.
func KeysFrom(fetch func(context.Context) ([]byte, error), refresh time.Duration, log *slog.Logger) *Keys {
	keys := NewKeys(KeyOptions{Refresh: refresh, Logger: log})
	keys.fetch = fetch
	return keys
}
