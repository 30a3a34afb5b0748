package compaction_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A prompt is the same whether the texts of its messages were loaded immediately or had to
// be fetched, and so is what people are shown of it, byte for byte and number for number: with a
// summary, pinned messages, tool turns, system rows, and after everything was compacted. What a run
// has fetched for a prompt it does not fetch for the next one.
func TestPromptsOfTextsThatAreFetched(t *testing.T) {
	t.Parallel()
	for _, policy := range contextwindow.PresetNames() {
		t.Run(policy, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{Policy: policy}, 8192)
			w.writer.Add(always(notes))
			w.turns(30, 110)
			w.Messages[0].Pinned, w.Messages[1].Role = true, core.RoleSystem
			w.ask("compute")
			for i := range 4 {
				w.WithTexts = 0
				turn, d := w.fit()
				loaded := w.request(turn, d)

				w.WithTexts = 1
				turn, d = w.fit()
				fetched := w.request(turn, d)
				compare.Equal(t, fmt.Sprintf("step %d: request", i), loaded, fetched)
				w.same(w.report(), w.view(), fetched, d)

				w.Loaded = nil
				again, d, err := w.keeper.Fit(t.Context(), turn)
				must.Do(t, err)
				w.request(again, d)
				if len(w.Loaded) > 0 && len(d.Pinned) == 0 {
					t.Errorf("step %d: texts were fetched again: %v bytes", i, w.Loaded)
				}

				call := w.said(core.RoleAssistant, "let me see")
				call.RunID, call.ToolCalls = w.run.ID, []core.ToolCall{{ID: fmt.Sprint(i), Name: "calculator", Arguments: "{}"}}
				call.TokenCount = w.count.Message(call)
				result := core.WithExcerpt(w.said(core.RoleTool, strings.Repeat("result ", 2500)), 4000)
				result.RunID, result.ToolCallID = w.run.ID, fmt.Sprint(i)
				result.TokenCount = w.count.Message(core.Message{Role: core.RoleTool, Content: result.Shown(true)})
				w.add(call, result)
			}
		})
	}
}

// A message that is deleted while its prompt is made is not in it, and the run continues.
func TestDeletedBeforeItsTextIsLoaded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	w.turns(5, 30)
	w.ask("what next?")
	turn := w.turn()
	gone := w.Messages[2]
	w.Messages = append(w.Messages[:2:2], w.Messages[3:]...)
	turn, d, err := w.keeper.Fit(t.Context(), turn)
	must.Do(t, err)
	req, _, err := w.keeper.Request(t.Context(), turn, d)
	must.Do(t, err)
	if got := req.Messages[2].Content; got != "[this message was deleted]" || strings.Contains(fmt.Sprint(req.Messages), gone.Content) {
		t.Errorf("got %q in the place of the deleted message", got)
	}
}

// However many sessions need large texts concurrently: a bounded part is in memory at a time
// as the limit of the process says.
func TestSlicesOfAllSessionsAreBounded(t *testing.T) {
	t.Parallel()
	outside := t
	synctest.Test(t, func(t *testing.T) {
		large := strings.Repeat("x", 4<<20)
		var inside, most, done atomic.Int64
		let := make(chan struct{})
		const sessions, atOnce = 20, 8
		w := newWorld(outside, core.ContextSettings{}, 128_000)
		for range 2 {
			w.add(core.Message{Role: core.RoleUser, Content: large, TokenCount: 10}, core.Message{Role: core.RoleAssistant, Content: "yes", TokenCount: 10})
		}
		w.ask("and now?")
		w.WithTexts = 1
		turn := w.turn()
		w.db.Before(func(method string) error {
			if method == "GetMessages" {
				most.Store(max(most.Load(), inside.Add(1)))
				<-let
				inside.Add(-1)
			}
			return nil
		})
		for range sessions {
			go func() {
				if _, _, err := w.keeper.Fit(t.Context(), turn); err != nil {
					outside.Error(err)
				}
				done.Add(1)
			}()
		}
		synctest.Wait()
		compare.Equal(outside, "slices of 4 MiB are loaded at once", atOnce, inside.Load())
		close(let)
		synctest.Wait()
		if done.Load() != sessions || most.Load() > atOnce {
			outside.Errorf("%d of %d prompts were made, with %d slices at once", done.Load(), sessions, most.Load())
		}
	})
}

// However many people view contexts concurrently: the turns loaded for them are bounded.
func TestViewsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 8192)
	var loading atomic.Int32
	begin := make(chan struct{})
	w.db.Before(func(call string) error {
		if call == "Sessions.Get" && loading.Add(1) <= 16 {
			<-begin
		}
		return nil
	})
	w.bubble(func() {
		begin = make(chan struct{})
		for range 20 {
			go func() { w.report() }()
		}
		synctest.Wait()
		compare.Equal(t, "reports that load", int32(16), loading.Load())
		close(begin)
		synctest.Wait()
		compare.Equal(t, "after the first ended", int32(20), loading.Load())
	})
}
