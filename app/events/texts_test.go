package events

import (
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
)

// The texts of any number of concurrent messages are kept; abandoned ones are dropped.
func TestTextsOfManyRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		all := newLiveTexts()
		say := func(session core.SessionID, offset int) {
			all.appendDelta(core.Event{SessionID: session, RunID: core.RunID(session), Type: core.EventMessageDelta},
				core.DeltaData{MessageID: core.MessageID(session), Attempt: 1, Offset: offset, Text: "word "})
		}
		name := func(n int) core.SessionID { return core.SessionID(time.Duration(n).String()) }
		const lost, alive = 500, 2000
		for n := range lost + alive {
			say(name(n), 0)
		}
		<-time.After(idleText)
		for n := lost; n < lost+alive; n++ {
			say(name(n), len("word "))
		}
		<-time.After(time.Second)
		say("one more", 0)
		for n := range lost + alive {
			text := all.textsOf(name(n))
			if want := n >= lost; want != (len(text) == 1 && text[0].Data.(core.DeltaData).Text == "word word ") {
				t.Fatalf("text %d: got %+v, want it kept: %t", n, text, want)
			}
		}
	})
}
