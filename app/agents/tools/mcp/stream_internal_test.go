package mcp

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A program that never stops talking waits: it costs no core for ever.
func TestFloodIsReadSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		said := newOutput(ctx, slog.New(slog.DiscardHandler), func(text string) string { return text })
		write := func(n int) time.Duration {
			begun, part := time.Now(), bytes.Repeat([]byte("x"), 32<<10)
			for range n / len(part) {
				must.Get(said.Write(part))(t)
			}
			return time.Since(begun)
		}
		compare.Equal(t, "the first, ten seconds of more", []time.Duration{0, 10 * time.Second}, []time.Duration{write(2 * maxMessage), write(10 * programRate).Round(time.Second)})
		cancel()
		compare.Equal(t, "when it ends", 0, write(10*programRate))
	})
}
