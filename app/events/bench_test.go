package events_test

import (
	"iter"
	"strconv"
	"testing"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// BenchmarkDelta is the way of one piece of text from a run to the frames of its watchers, in
// one process.
func BenchmarkDelta(b *testing.B) {
	for _, watchers := range []int{1, 10} {
		b.Run(strconv.Itoa(watchers)+" watchers", func(b *testing.B) {
			feed, _, _ := newFeed(b, 0)
			const text = " a small piece of text"
			piece := func(i int) core.Event {
				return core.NewEvent(session, "r1", core.EventMessageDelta, core.DeltaData{
					MessageID: core.MessageID("m" + strconv.Itoa(i>>10)), Attempt: 1, Offset: i & 1023 * len(text), OffsetUTF16: i & 1023 * len(text), Text: text,
				})
			}
			readers := make([]func() (core.Event, error, bool), watchers)
			for i := range readers {
				next, stop := iter.Pull2(feed.Watch(b.Context(), tenant, session, core.Cursor{Live: true}))
				b.Cleanup(stop)
				readers[i] = next
			}
			feed.Delta(b.Context(), piece(1<<20))
			var frame []byte
			read := func() {
				for _, next := range readers {
					for e, err, _ := next(); ; e, err, _ = next() {
						if err == nil {
							frame, err = handlers.AppendEvent(frame[:0], e)
						}
						if err != nil {
							b.Fatal(err)
						}
						if e.Type == core.EventMessageDelta {
							break
						}
					}
				}
			}
			read()
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				feed.Delta(b.Context(), piece(i))
				read()
			}
		})
	}
}
