package compaction_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/coretest"
	"bobbin/tests/must"
)

// edit is Edit.
func (w *world) edit(content string, version int) (core.Summary, error) {
	return w.control().Edit(w.t.Context(), w.scope(), w.Session.ID, core.SummaryEdit{Content: content, Version: version})
}

// An edited summary is a new version with the same cursor, counted, in
// the prompt immediately, and watchers are notified.
func TestEditSummary(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(6, 50)
	w.another(4, "The dog is called Rex.")
	used := w.report().Planned
	got := must.Get(w.edit("  The dog is called Bello. \x00\n", 1))(t)
	const want = "The dog is called Bello. \uFFFD"
	was := w.Summaries[0]
	was.Version, was.State, was.Content, was.TokenCount, was.TokensAfter = 2, core.SummaryActive, want, w.count.Text(want), w.count.Text(want)
	was.TokensBefore, was.Strategy, was.Trigger, was.Note = w.Summaries[0].TokenCount, "edited", "manual_edit", "edited from version 1"
	for name, s := range map[string]core.Summary{"returned": got, "stored": w.Summaries[1]} {
		if diff := cmp.Diff(was, s, cmpopts.IgnoreFields(core.Summary{}, "ID", "CreatedAt", "ActivatedAt", "SessionID")); diff != "" || s.ID == was.ID || s.ActivatedAt == nil {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	told := coretest.Data[core.ContextData](w.feed.Published()[0])
	r := w.report()
	if told.Version != 2 || told.TokensBefore != used || told.TokensAfter != r.Planned || told.Trigger != "manual_edit" {
		t.Errorf("context.completed says %+v, /context %d tokens, before %d", told, r.Planned, used)
	}
	if system := strings.Join(w.view().System, "\n"); !strings.Contains(system, want) || strings.Contains(system, "Rex") || r.Coverage.Summarized != 4 {
		t.Errorf("got the prompt %q, want the words of the user", system)
	}
	before := w.state()
	if again, err := w.edit(want, 2); err != nil || again.Version != 2 || w.state() != before {
		t.Errorf("the same words: got version %d and %v, state %s, want nothing done", again.Version, err, w.state())
	}
}

// What cannot be stored is refused in words, and nothing is changed.
func TestEditSummaryRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		content string
		version int
		without bool // there is no summary
		kind    error
		says    string
	}{
		"no summary":    {"words", 0, true, core.ErrUnprocessable, "summarize"},
		"empty":         {" \n", 0, false, core.ErrInvalid, "is empty"},
		"too long":      {strings.Repeat("word ", 800), 0, false, core.ErrInvalid, "leave 727"},
		"older version": {"words", 1, false, core.ErrConflict, "version 2"},
		"no version":    {"words", 9, false, core.ErrConflict, "version 2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 8192)
			w.turns(6, 50)
			if !tt.without {
				w.another(2, "first")
				w.another(4, "second")
			}
			before := w.state()
			_, err := w.edit(tt.content, tt.version)
			if !errors.Is(err, tt.kind) || !strings.Contains(fmt.Sprint(err), tt.says) {
				t.Errorf("got %v, want %v that says %q", err, tt.kind, tt.says)
			}
			if w.state() != before || len(w.feed.Published()) > 0 {
				t.Errorf("got state %s, before %s", w.state(), before)
			}
		})
	}
}

// The second writer gets an error; the first one's text stays.
func TestEditRestoreConflict(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*world) error{
		"edit": func(w *world) error { _, err := w.edit("mine", 0); return err },
		"restore": func(w *world) error {
			_, err := w.control().Restore(w.t.Context(), w.scope(), w.Session.ID, 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, core.ContextSettings{}, 8192)
			w.turns(6, 50)
			w.another(2, "first")
			w.db.Before(func(method string) error {
				if method == "ApplyContext" || method == "RestoreSummary" {
					w.another(4, "theirs")
				}
				return nil
			})
			compare.Error(t, "change(w)", core.ErrConflict, change(w))
			if w.Session.SummaryVersion != 2 || *w.Session.ConversationSummary != "theirs" {
				t.Errorf("got version %d, %q", w.Session.SummaryVersion, *w.Session.ConversationSummary)
			}
		})
	}
}

// restore is Restore, which must succeed.
func (w *world) restore(version int) {
	w.t.Helper()
	got := must.Get(w.control().Restore(w.t.Context(), w.scope(), w.Session.ID, version))(w.t)
	stored, err := w.db.Sessions.Get(w.t.Context(), w.scope(), w.Session.ID)
	if diff := cmp.Diff(stored, got); err != nil || diff != "" {
		w.t.Errorf("session (-stored +returned):\n%s", diff)
	}
}

// Undo: the cursor goes back, what is behind it is sent verbatim
// again, as if nothing had been masked or left out, and an undo is undone.
func TestRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(8, 50)
	w.another(4, "first")
	w.another(10, "second")
	w.Session.PromptState = []byte(`{"masked_through":9,"left_out":[{"from":11,"through":12}]}`)
	used := w.report().Planned
	for _, step := range []struct{ version, covered, active int }{{1, 4, 3}, {0, 0, 0}, {2, 10, 4}} {
		earlier := len(w.feed.Published())
		w.restore(step.version)
		r := w.report()
		told := coretest.Data[core.ContextData](w.feed.Published()[earlier])
		if r.Coverage.Summarized != step.covered || r.Coverage.Verbatim != 16-step.covered || w.Session.SummaryVersion != step.active {
			t.Errorf("restore %d: got %+v, version %d, want %d covered and the rest verbatim", step.version, r.Coverage, w.Session.SummaryVersion, step.covered)
		}
		if told.TokensBefore != used || told.TokensAfter != r.Planned || told.Trigger != "restore" || told.MessagesCovered != step.covered || told.Version != step.active {
			t.Errorf("restore %d: context.completed says %+v, /context %d tokens, before %d", step.version, told, r.Planned, used)
		}
		used = r.Planned
		before := w.state()
		if w.restore(w.Session.SummaryVersion); w.state() != before {
			t.Errorf("restoring the version in use: got %s, want nothing done", w.state())
		}
	}
}

// An undo holds: the share trigger waits for new material, as after a compaction; the
// report says when it fires.
func TestRestoreHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{Timing: new("inline")}, 32_000)
	w.writer.Add(always(notes))
	w.turns(60, 187)
	w.ask("one")
	w.fit()
	w.endRun()
	w.add(w.said(core.RoleAssistant, "two"))
	if w.Session.SummaryVersion != 1 {
		t.Fatal("nothing was summarized: the case proves nothing")
	}
	w.restore(0)
	r := w.report()
	if r.Used <= r.Trigger || r.Used > r.Usable || r.WillTrigger || r.Triggers[0].Threshold <= r.Used {
		t.Errorf("got %d tokens over the trigger of %d, threshold %+v, will trigger %v", r.Used, r.Trigger, r.Triggers, r.WillTrigger)
	}
	w.ask("three")
	if w.fit(); w.Session.SummaryVersion != 0 {
		t.Error("the next message has summarized again at once")
	}
	w.endRun()
	for turns := 0; !w.report().WillTrigger; turns++ {
		if w.turns(1, 300); turns > 20 {
			t.Fatal("the trigger never fires again")
		}
	}
	w.turns(1, 300)
	w.ask("four")
	if w.fit(); w.Session.SummaryVersion == 0 {
		t.Error("nothing is summarized although the report said so")
	}
}

// L2, undo: notes on a tool loop that the summary had passed replace it again.
func TestRestoreNotes(t *testing.T) {
	t.Parallel()
	w := looping(t, core.CompactionSettings{}, 128_000)
	w.writer.Add(always(loopNotes))
	w.turns(2, 20)
	w.another(2, "first")
	w.ask("Read all files.")
	for range 8 {
		w.use(300)
	}
	w.fit()
	w.add(w.said(core.RoleAssistant, "done"))
	w.endRun()
	got := w.where(w.Messages[5].ID)
	if got.Placement != core.PlaceCovered || got.SummaryVersion != 2 || got.FirstVersion != 0 || !strings.Contains(got.Reason, "Notes on") || got.PromptTokens != 0 {
		t.Errorf("got %+v, want it in the notes of version 2", got)
	}
	noted := w.report()
	w.turns(1, 20)
	w.another(22, "all of it")
	if got := w.where(w.Messages[5].ID); got.SummaryVersion != 3 || got.FirstVersion != 3 || noted.Coverage.Compacted != 10 {
		t.Errorf("got %+v, want it in the summary; %+v before", got, noted.Coverage)
	}
	w.restore(1)
	if r := w.report(); r.Coverage.Compacted != 10 || r.Coverage.Lost != 0 {
		t.Errorf("got %+v, want the notes in use again", r.Coverage)
	}
	if told := coretest.Data[core.ContextData](w.feed.Published()[len(w.feed.Published())-1]); told.TokensAfter != w.report().Planned {
		t.Errorf("context.completed says %+v, /context %d", told, w.report().Planned)
	}
}

// The cursor never passes the message that the run in progress answers.
func TestRestoreInMidRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, core.ContextSettings{}, 128_000)
	w.turns(4, 50)
	w.ask("one")
	w.another(4, "first")
	w.another(9, "through the question")
	w.another(6, "third")
	before := w.state()
	if _, err := w.control().Restore(t.Context(), w.scope(), w.Session.ID, 2); !errors.Is(err, core.ErrConflict) || w.state() != before {
		t.Errorf("got %v, want ErrConflict and nothing done", err)
	}
	w.restore(1)
	if got := w.where(w.Messages[8].ID); got.Placement != core.PlaceVerbatim || w.Session.SummaryThroughSeq != 4 {
		t.Errorf("got %+v, want the question in the prompt", got)
	}
}
