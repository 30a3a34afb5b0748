package mcp

import (
	"bobbin/tests/must"
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// What a program writes to its standard error in a flood is read at a bounded rate.
func TestStandardErrorIsReadSlowly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := newOutput(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), strings.Clone)
		line := append(bytes.Repeat([]byte("e"), 1<<10-1), '\n')
		begin := time.Now()
		for range messagesAtOnce / 2 {
			must.Get(w.Write(line))(t)
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("%d lines took %s, want no wait", messagesAtOnce/2, took)
		}
		for range messagesAtOnce {
			must.Get(w.Write(line))(t)
		}
		if took, want := time.Since(begin), messagesAtOnce*time.Second/messagesPerSecond; took < want {
			t.Errorf("%d lines more took %s, want %s at least", messagesAtOnce, took, want)
		}
		if got := w.last(); got == "" || log.Len() > 200_000 {
			t.Errorf("got the last line %q and %d bytes of the log", got, log.Len())
		}
	})
}
