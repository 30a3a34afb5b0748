package crash_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// An answer that is streamed to Slack is interrupted by SIGKILL. The next attempt at the run is
// streamed to a post of its own, which has the whole answer once; the first one is closed and
// says that it was interrupted.
func TestSlackStreamOfTwoAttempts(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		const text = "The first line of the answer.\nThe second line of the answer.\nThe third line of the answer.\nThe end."
		held, died := make(chan struct{}), make(chan struct{})
		release := sync.OnceFunc(func() { close(died) })
		var pieces atomic.Int32
		w := newSlackWorld(t, p, 1, fakeslack.Options{RetryDelays: []time.Duration{0, time.Second, 5 * time.Second}}, provider.Options{
			Window: modelWindow, Pieces: 4, Say: func(string) string { return text },
			Hold: func(string) {
				if pieces.Add(1) == 4 { // of the first attempt
					close(held)
					<-died
				}
			},
		})
		t.Cleanup(release) // before the model is closed
		channel, alice := w.ws.AddChannel("C1", "pumps").ID, w.ws.AddUser("Alice", "")
		root, err := alice.Reply(channel, "", w.ws.Bot().Mention()+" what is the answer?")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		posts := func() []fakeslack.Message {
			return slices.DeleteFunc(w.ws.Thread(channel, root), func(m fakeslack.Message) bool { return m.AppID == "" })
		}
		<-held
		if err := w.Wait(ctx, func() bool { return len(posts()) == 1 && strings.Contains(posts()[0].Markdown(), "The first line") }); err != nil {
			t.Fatalf("the first attempt is not shown: %+v, %v", posts(), err)
		}
		w.bobbins[0].kill()
		release()
		w.bobbins[0].start(t)
		w.settle(patience)
		got := posts()
		if len(got) != 2 || !strings.Contains(string(got[0].Blocks), "interrupted") || strings.Contains(got[0].Markdown(), "line") || got[1].Markdown() != "answer to: "+text {
			t.Fatalf("got the posts %+v, want a note and the whole answer", got)
		}
		for _, m := range got {
			if m.Stream != nil && m.Stream.Open {
				t.Errorf("the stream of %+v is open", m)
			}
		}
		if pieces.Load() < 6 {
			t.Errorf("got %d pieces of answers, want those of two attempts", pieces.Load())
		}
	})
}
