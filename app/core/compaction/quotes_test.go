package compaction_test

import (
	"slices"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// newQuotesWorld returns a world whose model binds thoughts to their prompt, after an answer with
// a thought to a question for which a passage was recalled, and the prompt of that answer.
func newQuotesWorld(t *testing.T) (*world, llm.Request) {
	w, _ := newRecallWorld(t, core.ContextSettings{Recall: new("auto"), Timing: new("inline")}, "The canoe\nis from Turku.")
	w.useModel(llm.PrefixRefuses)
	w.ask("the canoe")
	turn, d := w.fit()
	req := w.request(turn, d)
	_, sent, err := w.keeper.Request(t.Context(), turn, d)
	must.Do(t, err)
	thought := core.Part{
		Type: core.PartReasoning, Text: "A canoe.", Signature: "signed", Tokens: 8, Origin: "anthropic/m", Prefix: req.Prefix,
		Recalled: d.RecalledPassages(sent.Of[contextwindow.SectionRecalled]),
	}
	if thought.Recalled == nil || len(recalledIn(req.Messages)) != 1 {
		t.Fatalf("got %+v, want passages that can be quoted again", d.Recalled)
	}
	answer := w.said(core.RoleAssistant, "From Turku.")
	answer.RunID, answer.Parts = w.run.ID, []core.Part{thought}
	w.add(answer)
	w.ask("go on")
	return w, req
}

// useModel continues with a model of the contract.
func (w *world) useModel(contract llm.PrefixContract) {
	info := w.model.Info()
	info.Provider, info.Prefix, info.ThoughtOrigin = "anthropic", contract, "anthropic/m"
	w.model = llmtest.Scripted().WithInfo(info)
	w.profile.Model = w.model
}

// editMessage changes the text of the message with this seq.
func (w *world) editMessage(seq int64, content string) {
	w.db.Edit(func() {
		for i := range w.Messages {
			if w.Messages[i].Seq == seq {
				w.Messages[i].Content = content
			}
		}
	})
}

// fitRequest returns what is sent next.
func (w *world) fitRequest(turn compaction.Turn) llm.Request {
	w.t.Helper()
	turn, d, err := w.keeper.Fit(w.t.Context(), turn)
	must.Do(w.t, err)
	req, sent, err := w.keeper.Request(w.t.Context(), turn, d)
	if err != nil || sent.Used(d) > d.Total {
		w.t.Fatalf("got %d tokens, planned %d, %v", sent.Used(d), d.Total, err)
	}
	return req
}

// hasThought reports whether the request has the thought.
func hasThought(req llm.Request) bool {
	return slices.ContainsFunc(req.Messages, func(m llm.Message) bool {
		return slices.ContainsFunc(m.Parts, func(p core.Part) bool { return p.Signature != "" })
	})
}

// The passages that a prompt quoted stay before their question in the next prompt, which begins
// with the whole earlier one, so the thought of the answer is valid.
func TestQuotesStayWithTheirThought(t *testing.T) {
	t.Parallel()
	w, before := newQuotesWorld(t)
	after := w.fitRequest(w.turn())
	if !hasThought(after) {
		t.Errorf("got %+v, want the thought", after.Messages)
	}
	for i, m := range before.Messages {
		if got := after.Messages[i]; got.Role != m.Role || got.Content != m.Content {
			t.Errorf("message %d is %q, before %q", i, got.Content, m.Content)
		}
	}
	again := must.Get(w.control().Prompt(t.Context(), w.scope(), w.Session.ID, core.PlanPreview{}))(t)
	total, shown := 0, 0
	for _, m := range again.Messages {
		total += m.Tokens
		if m.Placement == core.PlaceRecalled {
			shown += m.Tokens
		}
	}
	if shown == 0 || total > again.Tokens {
		t.Errorf("got %d tokens of passages, %d of messages in a prompt of %d", shown, total, again.Tokens)
	}
}

// A prompt quotes what it quoted before or nothing: where a quoted text has changed or is gone,
// or the model does not bind its thoughts, the passages are not sent again.
func TestQuotesNotSentAgain(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world){
		"the text has changed": func(w *world) { w.editMessage(1, "The kayak\nis from Turku, too.") },
		"the text is gone":     func(w *world) { w.editMessage(1, "") },
		"a free model":         func(w *world) { w.useModel(llm.PrefixFree) },
		"an import": func(w *world) {
			w.db.Edit(func() {
				last := w.Messages[len(w.Messages)-2]
				last.Parts[0].Recalled = nil
			})
		},
		"a forged size": func(w *world) {
			w.db.Edit(func() {
				last := w.Messages[len(w.Messages)-2]
				last.Parts[0].Recalled = &core.RecalledPassages{Tokens: 1, Passages: last.Parts[0].Recalled.Passages}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, _ := newQuotesWorld(t)
			change(w)
			if req := w.fitRequest(w.turn()); hasThought(req) {
				t.Errorf("got %+v, want no thought", req.Messages)
			}
		})
	}
}
