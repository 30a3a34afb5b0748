package nodes_test

import (
	"context"
	"iter"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// deltas returns the texts so far of each message, put together by the offsets;
// it fails the test for a piece that leaves a hole.
func deltas(t *testing.T, w *world, kind core.EventType) map[core.MessageID]string {
	t.Helper()
	out := map[core.MessageID]string{}
	for _, e := range w.feed.All(kind) {
		d := coretest.Data[core.DeltaData](e)
		if d.Offset != len(out[d.MessageID]) || d.Attempt != w.run.Attempt {
			t.Errorf("got %s of attempt %d at %d, want attempt %d at %d", kind, d.Attempt, d.Offset, w.run.Attempt, len(out[d.MessageID]))
		}
		out[d.MessageID] += d.Text
	}
	return out
}

// S1: what is streamed is the message that is stored, piece by piece, with
// offsets in bytes; reasoning has offsets of its own, also reasoning that the model wrote as text.
func TestDeltasAreTheMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, llmtest.Step{Text: []string{"<thi", "nk>hm ", "…</think>\n\nGrüße", ", ", "", "世界 👋", "!"}})
	s := w.mustCall(w.begin("hello"))
	m := w.last()
	compare.Equal(t, "text", map[core.MessageID]string{m.ID: "Grüße, 世界 👋!"}, deltas(t, w, core.EventMessageDelta))
	compare.Equal(t, "reasoning", map[core.MessageID]string{m.ID: "hm …"}, deltas(t, w, core.EventReasoningDelta))
	if m.Content != "Grüße, 世界 👋!" || m.Status != core.MessageComplete || m.Model != "scripted" || m.FinishReason != core.FinishStop {
		t.Errorf("got message %+v", m)
	}
	if want := w.run.DraftID(1, 0); m.ID != want {
		t.Errorf("got id %s, want the one that the next attempt can tell: %s", m.ID, want)
	}
	compare.Equal(t, "parts", []core.Part{{Type: "reasoning", Text: "hm …"}}, m.Parts)
	if w.run.Status != core.RunSucceeded || w.run.AnswerID != m.ID || len(w.Writes) != 1 {
		t.Errorf("got run %s with answer %q after %d writes, want it ended by the write of its answer", w.run.Status, w.run.AnswerID, len(w.Writes))
	}
	if _, ok := s.Answer(); !ok {
		t.Errorf("got a state without the answer: %+v", s.RunMessages)
	}
}

// The arguments of calls of the client's tools are streamed as they are stored; those of the server's
// tools, and of a call that is stored with another id, are not. A call that breaks off is taken back.
func TestArgumentsAreStreamed(t *testing.T) {
	t.Parallel()
	const where = `{"city":"Bonn"}`
	w := newWorld(t, 8192,
		llmtest.Step{InBytes: true, ToolCalls: []core.ToolCall{{ID: "c0", Name: "weather", Arguments: `{"ci`}}, Err: &llm.Error{Kind: llm.KindTruncated, Message: "gone"}},
		llmtest.Step{InBytes: true, ToolCalls: []core.ToolCall{
			{ID: "c1", Name: "weather", Arguments: where}, {ID: "c2", Name: "grumble", Arguments: where}, {ID: "c3", Name: "weather", Arguments: where}, {ID: "c1", Name: "weather", Arguments: where},
		}}).with(breaks("grumble", ""))
	s := w.begin("hello")
	s.Run.Options = &core.RunOptions{Tools: []core.ClientTool{{Name: "weather"}}}
	w.mustCall(s)
	got := map[string]string{}
	for _, e := range w.feed.All(core.EventArgumentsDelta) {
		d := coretest.Data[core.DeltaData](e)
		key := string(d.MessageID) + " " + d.CallID()
		if d.Offset != len(got[key]) || d.Name != "weather" {
			t.Errorf("got a piece of %s at %d, want one of weather at %d", d.Name, d.Offset, len(got[key]))
		}
		got[key] += d.Text
	}
	lost := string(coretest.Data[core.DiscardedData](w.feed.All(core.EventMessageDiscarded)[0]).MessageID)
	want := map[string]string{lost + " c0": `{"ci`, string(w.last().ID) + " c1": where, string(w.last().ID) + " c3": where}
	compare.Equal(t, "arguments", want, got)
}

// What no database takes is not stored, nor shown.
func TestUnstorableText(t *testing.T) {
	t.Parallel()
	bad := "a\x00b\xffc"
	w := newWorld(t, 8192,
		llmtest.Step{Text: []string{bad}, Reasoning: bad, ToolCalls: []core.ToolCall{{ID: bad, Name: bad, Arguments: bad, Signature: bad}}},
		llmtest.Step{Text: []string{bad, bad}, Parts: []core.Part{{Type: "reasoning", Text: bad, Name: bad, Signature: bad}}, Finish: core.FinishReason(bad)}).with(breaks("grumble", bad))
	s := w.mustCall(w.begin("hello"))
	s = w.mustUse(s)
	w.mustCall(s)
	for _, m := range w.Messages {
		for _, text := range append([]string{m.Content, string(m.FinishReason), m.ToolCallID, m.ToolName}, all(m)...) {
			if strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
				t.Errorf("message %d has %q, which PostgreSQL refuses", m.Seq, text)
			}
		}
	}
	if got := deltas(t, w, core.EventMessageDelta)[w.last().ID]; got != w.last().Content {
		t.Errorf("streamed %q, stored %q", got, w.last().Content)
	}
}

func all(m core.Message) []string {
	var out []string
	for _, c := range m.ToolCalls {
		out = append(out, c.ID, c.Name, c.Arguments, c.Signature)
	}
	for _, p := range m.Parts {
		out = append(out, p.Text, p.Name, p.Signature)
	}
	return out
}

// A stream that breaks off after it began is taken back and started over, under
// another id; what both calls cost is booked.
func TestBrokenStreamStartsOver(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.ErrorKind{llm.KindTruncated, llm.KindNetwork, llm.KindOverloaded, llm.KindTimeout, llm.KindRateLimit} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 8192,
				llmtest.Step{Text: []string{"half of ", "an"}, Err: &llm.Error{Kind: kind, Provider: "scripted", Message: "gone"}},
				"a whole answer")
			w.mustCall(w.begin("hello"))
			texts := deltas(t, w, core.EventMessageDelta)
			discarded := w.feed.All(core.EventMessageDiscarded)
			if len(discarded) != 1 || len(texts) != 2 {
				t.Fatalf("got %d discards of %d messages, want 1 of 2", len(discarded), len(texts))
			}
			d := coretest.Data[core.DiscardedData](discarded[0])
			if d.MessageID == w.last().ID || texts[d.MessageID] != "half of an" || d.Reason != string(kind) {
				t.Errorf("got %+v discarded, want the half answer, for %s", d, kind)
			}
			if w.last().Content != "a whole answer" || w.Writes[0].Next != w.last().ID {
				t.Errorf("got answer %q as %s; %s was told to take the place of the half one", w.last().Content, w.last().ID, w.Writes[0].Next)
			}
			var booked []string
			for _, r := range w.records() {
				booked = append(booked, r.Error)
			}
			compare.Equal(t, "booked calls", []string{string(kind), ""}, booked)
			order := w.feed.All(core.EventMessageDelta, core.EventMessageDiscarded, core.EventMessageCreated)
			if order[2].Type != core.EventMessageDiscarded || order[len(order)-1].Type != core.EventMessageCreated {
				t.Errorf("got events %v, want two deltas, the discard, the new answer", order)
			}
		})
	}
}

// A call starts over once. What cannot succeed, and what llm.WithRetry has tried
// already, does not start over at all.
func TestCallsThatFail(t *testing.T) {
	t.Parallel()
	fail := func(kind llm.ErrorKind, said ...string) llmtest.Step {
		return llmtest.Step{Text: said, Err: &llm.Error{Kind: kind, Provider: "scripted", Message: "no"}, Repeat: true}
	}
	for name, c := range map[string]struct {
		step  llmtest.Step
		calls int
		kind  llm.ErrorKind
	}{
		"breaks off twice":       {fail(llm.KindTruncated, "half"), 2, llm.KindTruncated},
		"fails before it began":  {fail(llm.KindOverloaded), 1, llm.KindOverloaded},
		"wrong key":              {fail(llm.KindAuth), 1, llm.KindAuth},
		"says nothing twice":     {llmtest.Step{Repeat: true}, 2, llm.KindEmpty},
		"blank twice":            {llmtest.Step{Text: []string{" \n"}, Repeat: true}, 2, llm.KindEmpty},
		"only thinks":            {llmtest.Step{Reasoning: "hm", Repeat: true}, 2, llm.KindEmpty},
		"thinks until the limit": {llmtest.Step{Reasoning: "hm", Finish: core.FinishLength, Repeat: true}, 1, llm.KindOutputLimit},
		"filtered in order":      {llmtest.Step{Finish: core.FinishContentFilter, Repeat: true}, 1, llm.KindContentFilter},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 8192, c.step)
			_, err := w.call(t.Context(), w.begin("hello"))
			if kindOf(err) != c.kind || len(w.model.Requests()) != c.calls {
				t.Errorf("got %v after %d calls, want %s after %d", err, len(w.model.Requests()), c.kind, c.calls)
			}
			compare.Equal(t, "calls are booked", c.calls, len(w.records()))
			if w.last().Role != core.RoleUser || w.run.Status != core.RunRunning {
				t.Errorf("got %q in the log, run %s, want nothing stored: app/runs ends the run", w.last().Content, w.run.Status)
			}
		})
	}
}

// An answer without anything in it is asked for again; if nothing was shown of it
// there is nothing to take back.
func TestEmptyAnswerIsRetried(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first    llmtest.Step
		discards int
	}{
		"nothing":       {llmtest.Step{Usage: &core.Usage{InputTokens: 300, OutputTokens: 1}}, 0},
		"blanks":        {llmtest.Step{Text: []string{"\n"}, Usage: &core.Usage{InputTokens: 300, OutputTokens: 1}}, 1},
		"only thoughts": {llmtest.Step{Reasoning: "well", Usage: &core.Usage{InputTokens: 300, OutputTokens: 1}}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 8192, c.first, "something")
			w.mustCall(w.begin("hello"))
			compare.Equal(t, "answer", "something", w.last().Content)
			compare.Equal(t, "discards", c.discards, len(w.feed.All(core.EventMessageDiscarded)))
			compare.Equal(t, "usage: want that of the empty answer too", 300, w.run.Usage.InputTokens)
		})
	}
}

// C1: the calibration learns from calls whose provider told the
// usage, from failed ones too, and from no others.
func TestCalibrationLearnsFromUsageOnly(t *testing.T) {
	t.Parallel()
	usage := &core.Usage{InputTokens: 777}
	w := newWorld(t, 8192,
		llmtest.Step{Usage: usage}, // empty: tried again
		"no usage",
		llmtest.Step{Text: []string{"usage"}, Usage: usage})
	w.mustCall(w.begin(strings.Repeat("one ", 300))) // shorter prompts are not learned from
	compare.Equal(t, "observed calls", 1, w.learned.Estimate("scripted", "").Samples)
	w.mustCall(w.begin("two"))
	ratio := func(call int) float64 { return 777 / float64(w.records()[call].Estimated) }
	if got := w.learned.Changed()[0]; got.Samples != 2 || math.Abs(got.Factor-(ratio(0)+ratio(2))/2) > 1e-9 {
		t.Errorf("got the factor %g after %d calls, want the mean of %g and %g", got.Factor, got.Samples, ratio(0), ratio(2))
	}
	// The estimate is in cl100k_base tokens and of what was really sent (W4).
	if got, sent := w.records()[2].Estimated, w.size(w.model.Requests()[2]); got < sent || got > sent+20 {
		t.Errorf("estimated %d tokens, sent %d", got, sent)
	}
}

// An answer that comes too late is not stored; the error says why.
func TestAnswerOfALostRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 8192, "too late")
	s := w.begin("hello")
	w.run.Attempt++
	compare.Error(t, "compare.ErrorOf(w.call(t.Context(), s))", core.ErrStale, compare.ErrorOf(w.call(t.Context(), s)))
}

// An answer that is in the log is not made again, open calls wait for tool_node.
func TestNothingIsSaidTwice(t *testing.T) {
	t.Parallel()
	t.Run("the answer is there", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 8192)
		s := w.begin("hello")
		m := w.append(core.Message{Role: core.RoleAssistant, Content: "said", RunID: s.Run.ID})
		w.mustCall(w.resume(s.Run))
		if w.run.Status != core.RunSucceeded || w.run.AnswerID != m.ID {
			t.Errorf("got run %s with answer %q, want it ended with %s", w.run.Status, w.run.AnswerID, m.ID)
		}
	})
	t.Run("calls are open", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, 8192)
		s := w.begin("hello")
		w.append(core.Message{Role: core.RoleAssistant, ToolCalls: []core.ToolCall{{ID: "c1", Name: "x"}}, RunID: s.Run.ID})
		w.mustCall(w.resume(s.Run))
		compare.Equal(t, "writes, model calls: want none", []int{0, 0}, []int{len(w.Writes), len(w.model.Requests())})
	})
}

// queued is a model whose calls wait for a slot.
type queued struct{ llm.Model }

func (q queued) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		if yield(llm.Delta{Queued: true}, nil) && yield(llm.Delta{}, nil) {
			q.Model.Stream(ctx, req)(yield)
		}
	}
}

// The watchers learn that the call waits for a slot of its server, and when it has one.
func TestWaitForASlotIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 32_000, "hello")
	w.profile.Model = queued{w.model}
	must.Get(w.call(t.Context(), w.begin("hi")))(t)
	var told []string
	for _, e := range w.feed.All(core.EventNodeStarted, core.EventMessageDelta) {
		if data, ok := e.Data.(core.NodeData); ok {
			told = append(told, data.Node)
		} else if len(told) > 0 && told[len(told)-1] != "text" {
			told = append(told, "text")
		}
	}
	compare.Equal(t, "told", []string{core.NodeModelSlot, nodes.NameLLM, "text"}, told)
}
