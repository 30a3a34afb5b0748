package nodes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/agents/nodes"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
)

// named returns a scripted model.
func named(name string, window int, answers ...any) *llmtest.Script {
	return llmtest.Scripted(answers...).WithInfo(llm.Info{Name: name, Provider: "other", Window: window, MaxOutput: window / 8})
}

// down is a failure of the kind before anything was said, whatever is asked.
func down(kind llm.ErrorKind) llmtest.Step {
	return llmtest.Step{Repeat: true, Err: &llm.Error{Kind: kind, Provider: "scripted", Message: "the provider's own words"}}
}

// fallingBackTo gives the agent fallback models.
func (w *world) fallingBackTo(models ...llm.Model) *world {
	w.profile.Fallbacks = models
	return w
}

// booked writes the books short: model, what went wrong.
func booked(w *world) []string {
	var out []string
	for _, r := range w.records() {
		out = append(out, strings.TrimSpace(r.Model+" "+r.Error))
	}
	return out
}

// A model that cannot be had is replaced for the call; the books, the message and
// the watchers are told the truth.
func TestFallbackAnswersWhenTheModelCannotBeHad(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.ErrorKind{
		llm.KindOverloaded, llm.KindRateLimit, llm.KindTimeout, llm.KindNetwork, llm.KindTruncated, llm.KindAuth, llm.KindNotFound,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			second := named("second", 8192, llmtest.Step{Text: []string{"from the second"}, Usage: &core.Usage{InputTokens: 40, OutputTokens: 4}})
			w := newWorld(t, 8192, down(kind)).fallingBackTo(second, named("third", 8192))
			s := w.mustCall(w.begin("hello"))
			m := w.last()
			if m.Content != "from the second" || m.Model != "second" || w.run.Status != core.RunSucceeded {
				t.Errorf("got %q of %s, run %s, want the second model's answer", m.Content, m.Model, w.run.Status)
			}
			compare.Equal(t, "books", []string{"scripted " + string(kind), "second"}, booked(w))
			warnings := w.feed.All(core.EventContextWarning)
			if len(warnings) != 1 {
				t.Fatalf("got %d warnings, want 1", len(warnings))
			}
			d := coretest.Data[core.ContextData](warnings[0])
			want := "The model scripted cannot answer (" + string(kind) + "); second takes its place for this answer."
			compare.Equal(t, "the warning", []string{want, "fallback"}, []string{d.Reason, d.Trigger})
			if s.Profile.Model != llm.Model(w.model) {
				t.Errorf("got the model %s for the next call, want the agent's own", s.Profile.Model.Info().Name)
			}
			compare.Equal(t, "usage: want the second model's", 40, w.run.Usage.InputTokens)
			compare.Equal(t, "got a discard, want none: nothing was shown", 0, len(w.feed.All(core.EventMessageDiscarded)))
		})
	}
}

// What no other model can do better is not tried with another.
func TestNoFallbackForWhatIsTheRequestsFault(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.ErrorKind{
		llm.KindInvalid, llm.KindContentFilter, llm.KindContextLength, llm.KindCanceled, llm.KindEmpty, llm.KindUnknown,
		llm.KindCompactionRefused, llm.KindToolChangesRefused,
	} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			second := named("second", 8192, "never")
			w := newWorld(t, 8192, down(kind)).fallingBackTo(second)
			_, err := w.call(t.Context(), w.begin("hello"))
			// A prompt that is refused as too long is made smaller, here to its floor.
			fits := kindOf(err) == kind || kind == llm.KindContextLength && errors.Is(err, core.ErrContextFloor)
			if !fits || len(second.Requests()) != 0 {
				t.Errorf("got %v after %d calls of the fallback, want %s after none", err, len(second.Requests()), kind)
			}
		})
	}
}

// The fallback's prompt is planned for its own window, which may be a small one
// (W12), and may be refused and made smaller as any other.
func TestFallbackIsPlannedAnew(t *testing.T) {
	t.Parallel()
	tooLong := &llm.Error{Kind: llm.KindContextLength, Provider: "other", Message: "too long", Limit: 6_000}
	small := named("small", 8192, llmtest.Fail(tooLong), "short of breath")
	w := newWorld(t, 128_000, down(llm.KindOverloaded)).turns(40, 200).fallingBackTo(small)
	for range 20 {
		w.writer.Add("## Facts\nThere were many turns.")
	}
	w.mustCall(w.begin("hello"))
	own := w.size(w.model.Requests()[0])
	if own < 10_000 {
		t.Fatalf("got a prompt of %d tokens for the large model, want one that the small one cannot take", own)
	}
	for i, limit := range []int{8192, 6_000} {
		if got := w.size(small.Requests()[i]); got > limit {
			t.Errorf("prompt %d: got %d tokens for the small model, want at most %d", i+1, got, limit)
		}
	}
	compare.Equal(t, "the answer of, estimates tightened", []any{"small", true}, []any{w.last().Model, w.tightened("small")})
}

// A fallback whose window cannot hold even the message is passed over; without
// another it is the model's own error that counts, not the fallback's size.
func TestFallbackThatIsTooSmall(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 3_000)
	tiny := named("tiny", 1024)
	w := newWorld(t, 128_000, down(llm.KindOverloaded)).fallingBackTo(tiny, named("third", 128_000, "fits"))
	w.profile.SystemPrompt = long
	w.mustCall(w.begin("hello"))
	compare.Equal(t, "after calls of the tiny model", []any{"fits", 0}, []any{w.last().Content, len(tiny.Requests())})
	compare.Equal(t, "books", []string{"scripted overloaded", "third"}, booked(w))

	w = newWorld(t, 128_000, down(llm.KindOverloaded)).fallingBackTo(tiny)
	w.profile.SystemPrompt = long
	if _, err := w.call(t.Context(), w.begin("hello")); kindOf(err) != llm.KindOverloaded {
		t.Errorf("got %v, want the model's own error", err)
	}
}

// A prompt that the provider's filter refuses, whether it says so with an error or an empty answer, is sent once more
// without all that came before the message, and a warning says so.
func TestFlaggedTextIsLeftOut(t *testing.T) {
	t.Parallel()
	for name, flagged := range map[string]any{
		"error":  &llm.Error{Kind: llm.KindContentFilter, Provider: "p", Status: 400, Message: "The prompt was filtered."},
		"answer": llmtest.Step{Finish: core.FinishContentFilter},
	} {
		w := newWorld(t, 8192, "Hello.", flagged, "4", flagged, flagged)
		w.mustCall(w.begin("FLAGGED"))
		w.mustCall(w.begin("What is 2+2?"))
		sent := fmt.Sprint(w.model.Requests()[2].System, w.model.Requests()[2].Messages)
		if strings.Contains(sent, "FLAGGED") || strings.Contains(sent, "left out") || !strings.Contains(sent, "2+2") {
			t.Errorf("%s: got the prompt %s, want it without what was refused", name, sent)
		}
		_, err := w.call(t.Context(), w.begin("Tell me about FLAGGED"))
		warnings := w.feed.All(core.EventContextWarning)
		compare.Equal(t, name+": of the last message, requests, warnings: the last try was not answered", []any{llm.KindContentFilter, 5, 1}, []any{kindOf(err), len(w.model.Requests()), len(warnings)})
		if d := coretest.Data[core.ContextData](warnings[0]); d.Trigger != "refused" || !strings.Contains(d.Reason, "delete or edit") {
			t.Errorf("%s: got the warning %+v", name, d)
		}
	}
}

// What a filter refused stays left out for the run's other calls, and one warning says so.
func TestFlaggedTextIsLeftOutOfTheRun(t *testing.T) {
	t.Parallel()
	filtered := &llm.Error{Kind: llm.KindContentFilter, Provider: "p", Status: 400, Message: "The prompt was filtered."}
	w := newWorld(t, 8192, "FLAGGED.", filtered, llmtest.Call(core.ToolCall{ID: "c1", Name: "look", Arguments: `{}`}), llmtest.Call(core.ToolCall{ID: "c2", Name: "look", Arguments: `{}`}), "Done.").with(says("look", "nothing"))
	w.mustCall(w.begin("hello"))
	s := w.begin("look")
	for range 2 {
		s = w.mustUse(w.mustCall(s))
	}
	w.mustCall(s)
	reqs := w.model.Requests()
	compare.Equal(t, "answer, requests, warnings", []any{"Done.", 5, 1}, []any{w.last().Content, len(reqs), len(w.feed.All(core.EventContextWarning))})
	if last := fmt.Sprint(reqs[4].Messages); strings.Contains(last, "FLAGGED") || strings.Count(last, "nothing") != 2 {
		t.Errorf("got the last prompt %s, want the run alone", last)
	}
}

// A filter that strikes in the middle leaves the half answer, in whatever way it says so: another try is not
// better, and would lose what was read. Its calls are not made.
func TestAnswerThatAFilterCutsOff(t *testing.T) {
	t.Parallel()
	for name, step := range map[string]llmtest.Step{
		"error":  {Text: []string{"half"}, Err: &llm.Error{Kind: llm.KindContentFilter, Provider: "p", Message: "The answer was filtered."}},
		"finish": {Text: []string{"half"}, ToolCalls: []core.ToolCall{{ID: "c1", Name: "look", Arguments: `{"a`}}, Finish: core.FinishContentFilter},
	} {
		w := newWorld(t, 8192, "Hello.", step).with(says("look", "nothing"))
		w.mustCall(w.begin("hello"))
		w.mustCall(w.begin("go on"))
		m := w.last()
		compare.Equal(t, name+": answer, reason, calls, requests, discarded", []any{"half", core.FinishContentFilter, 0, 2, 0},
			[]any{m.Content, m.FinishReason, len(m.ToolCalls), len(w.model.Requests()), len(w.feed.All(core.EventMessageDiscarded))})
	}
}

// pictures has the content of every image.
type pictures struct{ core.BlobStore }

func (pictures) Contents(_ context.Context, _ core.Tenant, ids []core.BlobID) (map[core.BlobID][]byte, error) {
	out := map[core.BlobID][]byte{}
	for _, id := range ids {
		out[id] = []byte("pixels")
	}
	return out, nil
}

// An image that the provider cannot read is described, in this prompt and in later ones.
func TestRefusedImageIsDescribed(t *testing.T) {
	t.Parallel()
	refused := &llm.Error{Kind: llm.KindInvalid, Provider: "p", Status: 400, Message: "Provider returned error", Unclear: true}
	w := newWorld(t, 32768, refused, llmtest.Call(core.ToolCall{ID: "c1", Name: "look", Arguments: `{}`}), "A cat.", refused, "4", refused, refused).with(says("look", "nothing"))
	w.model.WithInfo(llm.Info{Name: "scripted", Provider: "scripted", Window: 32768, MaxOutput: 1024, Images: true})
	image := core.Part{Type: core.PartImage, Name: "cat.gif", MediaType: "image/gif", BlobID: "a", Size: 6, Width: 8, Height: 8}
	run := w.accept(core.RunInput{Content: "What is this?", Parts: []core.Part{image}, Source: core.SourceAPI, TokenCount: 4000})
	for i, s := range []nodes.AgentState{w.mustUse(w.mustCall(w.resume(run))), w.begin("What is 2+2?")} {
		s = w.mustCall(s)
		reqs := w.model.Requests()
		if len(reqs) != 2*i+3 || len(reqs[3*i].Messages[0].Media) != 1 || len(reqs[2*i+2].Messages[0].Media) != 0 || !strings.Contains(llm.PlainText(reqs[2*i+2].Messages[0]), "cat.gif") {
			t.Errorf("message %d: got the prompts %+v, want one with the image and then a description", i+1, reqs[3*i:])
		}
		if s.Profile.Model != llm.Model(w.model) {
			t.Errorf("message %d: got another model for the next call", i+1)
		}
	}
	if _, err := w.call(t.Context(), w.begin("again")); kindOf(err) != llm.KindInvalid {
		t.Errorf("got error %v, want the refusal after one repetition", err)
	}
}
