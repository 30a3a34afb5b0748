package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// instructions are an InstructionReader.
type instructions struct {
	all   []core.StandingInstruction
	reads int
	err   error
}

// OnPath returns the newest instructions.
func (r *instructions) OnPath(_ context.Context, _ core.Tenant, _ core.SessionID, _ int64, limit int) ([]core.StandingInstruction, error) {
	r.reads++
	return slices.Clone(r.all[max(len(r.all)-limit, 0):]), r.err
}

// newStandingWorld returns a world in which the first message sets something for the whole
// conversation.
func newStandingWorld(t *testing.T, settings core.ContextSettings) (*world, *instructions) {
	w := newWorld(t, settings, 8192)
	r := &instructions{}
	w.options.Stores.Standing = r
	w.keeper = compaction.New(w.options)
	w.writer.Add(always(notes))
	w.add(w.said(core.RoleUser, "Never call me Bob."), w.said(core.RoleAssistant, "Noted."))
	_, _, log := w.now()
	r.all = append(r.all, core.StandingInstruction{ID: "1", MessageID: log[0].ID, Seq: 1, Text: "Never call me Bob."})
	return w, r
}

// listOf returns the message of the prompt that lists the standing instructions; empty = there
// is none.
func (w *world) listOf(turn compaction.Turn) (list string, at int) {
	w.t.Helper()
	turn, d, err := w.keeper.Fit(w.t.Context(), turn)
	must.Do(w.t, err)
	for at, m := range w.request(turn, d).Messages {
		if strings.Contains(m.Content, "<standing_instructions>") {
			compare.Equal(w.t, "the list is from", core.RoleUser, m.Role)
			return m.Content, at
		}
	}
	return "", -1
}

// A prompt lists an instruction when its message has left it, and what people add by hand at
// any time; it reads them once for a run.
func TestStandingInstructionsInPrompts(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"system", "user"} {
		w, r := newStandingWorld(t, core.ContextSettings{Timing: new("inline"), SummaryRole: new(role)})
		w.ask("go on")
		if list, _ := w.listOf(w.turn()); list != "" || r.reads != 0 {
			t.Errorf("summary of the %s: got %q and %d reads while the message is in the prompt", role, list, r.reads)
		}
		w.turns(30, 110)
		w.ask("go on")
		turn, _ := w.fit() // summarizes
		reads := r.reads
		list, at := w.listOf(turn)
		if want := map[string]int{"system": 0, "user": 1}[role]; !strings.Contains(list, "\n- #1: Never call me Bob.\n") || at != want {
			t.Errorf("summary of the %s: got %q as message %d, want the instruction in message %d", role, list, at, want)
		}
		if r.reads != reads {
			t.Errorf("got %d reads for the second prompt of a run", r.reads-reads)
		}
		_, _, log := w.now()
		last := log[len(log)-1]
		r.all = append(r.all, core.StandingInstruction{ID: "2", Seq: last.Seq, Text: "Be brief."}, core.StandingInstruction{ID: "3", MessageID: last.ID, Seq: last.Seq, Text: "Be polite."})
		if list, _ := w.listOf(w.turn()); !strings.Contains(list, fmt.Sprintf("\n- #1: Never call me Bob.\n- added by the user after #%d: Be brief.\n</", last.Seq)) {
			t.Errorf("got %q, want what was added by hand", list)
		}
		report := w.report()
		var got []string
		for _, i := range report.StandingInstructions {
			got = append(got, fmt.Sprint(i.ID, " ", i.Placement))
		}
		if want := "1 standing, 2 standing, 3 verbatim"; strings.Join(got, ", ") != want {
			t.Errorf("got %v in the report, want %s", got, want)
		}
		if i := slices.IndexFunc(report.Sections, func(p core.ContextPart) bool { return p.Name == "standing" }); i < 0 || report.Sections[i].Messages != 2 {
			t.Errorf("got sections %+v, want one of two instructions", report.Sections)
		}
	}
}

// The first prompt with a summary that was prepared lists the instructions of the messages that left it.
func TestStandingInstructionsOfAPreparedSummary(t *testing.T) {
	t.Parallel()
	w, _ := newStandingWorld(t, at("window", "background"))
	w.grow(near)
	w.bubble(func() {
		w.fit()
		synctest.Wait()
		w.grow(over)
		turn := w.turn()
		if list, _ := w.listOf(turn); turn.Session.SummaryVersion != 0 || w.Session.SummaryVersion != 1 || !strings.Contains(list, "\n- #1: Never call me Bob.\n") {
			t.Errorf("got %q with version %d, want the instruction", list, w.Session.SummaryVersion)
		}
	})
}

// What code writes of a summary does not repeat what stands: the prompt has it once, from a
// user. Where nothing is recognized, the summary has it.
func TestSummariesDoNotRepeatInstructions(t *testing.T) {
	t.Parallel()
	for _, strategy := range []string{"extractive", "hybrid"} {
		for _, recognized := range []bool{true, false} {
			w, _ := newStandingWorld(t, core.ContextSettings{Timing: new("inline"), Strategy: &strategy, StandingInstructions: &recognized})
			w.turns(30, 110)
			w.ask("go on")
			turn, d := w.fit() // summarizes
			req := w.request(turn, d)
			ofSystem, ofUsers := strings.Count(strings.Join(req.System, "\n"), "Never call me Bob."), 0
			for _, m := range req.Messages {
				if n := strings.Count(m.Content, "Never call me Bob."); m.Role == core.RoleUser {
					ofUsers += n
				} else {
					ofSystem += n
				}
			}
			if recognized && (ofSystem != 0 || ofUsers != 1) || !recognized && ofSystem == 0 {
				t.Errorf("%s, recognized %t: got the instruction %d times from the system and %d times from users", strategy, recognized, ofSystem, ofUsers)
			}
		}
	}
}

// An agent that does not want recognition has only what people add.
func TestStandingInstructionsNotRecognized(t *testing.T) {
	t.Parallel()
	w, r := newStandingWorld(t, core.ContextSettings{Timing: new("inline"), StandingInstructions: new(false)})
	edited := r.all[0]
	edited.ID, edited.Text, edited.EditedAt = "3", "Call me Bo.", &edited.CreatedAt
	r.all = append(r.all, core.StandingInstruction{ID: "2", Seq: 1, Text: "Be brief."}, edited)
	w.turns(30, 110)
	w.ask("go on")
	if list, _ := w.listOf(w.turn()); strings.Contains(list, "Bob") || !strings.Contains(list, "- added by the user after #1: Be brief.\n- #1, changed by the user: Call me Bo.\n") {
		t.Errorf("got %q, want what was added and edited by hand", list)
	}
}

// rule returns an instruction with words of its own.
func rule(n int) string { return fmt.Sprintf("Avoid a%[1]dx, b%[1]dy, c%[1]dz.", n) }

// The newest of ten thousand instructions are in the prompt, and the report says that others
// are not.
func TestTenThousandStandingInstructions(t *testing.T) {
	t.Parallel()
	w, r := newStandingWorld(t, core.ContextSettings{Policy: "off"})
	r.all = nil
	w.db.Edit(func() { w.Session.StandingCount = core.MaxInstructions })
	for n := range core.MaxInstructions {
		r.all = append(r.all, core.StandingInstruction{ID: core.InstructionID(fmt.Sprint(n)), Text: rule(n)})
	}
	w.ask("go on")
	list, _ := w.listOf(w.turn())
	lines := strings.Count(list, "\n- added by the user after #0:")
	if size := w.count.Text(list); lines < 5 || size > 8192/20 || !strings.Contains(list, rule(core.MaxInstructions-1)+"\n</") || !strings.Contains(list, "others are not listed here") {
		t.Errorf("got %d instructions in %d tokens: %q", lines, size, list)
	}
	report := w.report()
	if n := len(report.StandingInstructions); n != 200 || report.StandingInstructions[n-1].Placement != core.PlaceStanding || report.StandingInstructions[0].Placement != core.PlaceLeftOut {
		t.Errorf("got %d instructions in the report, want the newest 200", n)
	}
	saysLeftOut := func(reason string) bool {
		return strings.HasSuffix(reason, "standing instructions are left out: they do not fit")
	}
	if !slices.ContainsFunc(report.Reasons, saysLeftOut) {
		t.Errorf("got reasons %q, want that instructions are left out", report.Reasons)
	}
}

// Without the instructions no prompt is sent.
func TestStandingInstructionsCannotBeRead(t *testing.T) {
	t.Parallel()
	w, r := newStandingWorld(t, core.ContextSettings{})
	w.db.Edit(func() { w.Session.StandingCount = 1 }) // added by hand
	w.ask("go on")
	turn := w.turn()
	r.err = errors.New("the disk is gone")
	if _, _, err := w.keeper.Fit(t.Context(), turn); !errors.Is(err, r.err) {
		t.Errorf("got %v, want the failure", err)
	}
}

// In a session of several people an instruction replaces and withdraws only those of its speaker,
// and those of nobody in particular.
func TestResolveInstructionsOfSeveralPeople(t *testing.T) {
	t.Parallel()
	given := []core.StandingInstruction{
		{ID: "1", MessageID: "a", Seq: 1, Text: "Call me Ann.", Topic: "name", Speaker: "ann"},
		{ID: "2", MessageID: "b", Seq: 3, Text: "Call me Bob.", Topic: "name", Speaker: "bob"},
		{ID: "3", Seq: 4, Text: "My budget is 400 €.", Topic: "budget"},
		{ID: "4", MessageID: "c", Seq: 5, Text: "Call me Robert.", Topic: "name", Speaker: "bob"},
		{ID: "5", MessageID: "d", Seq: 7, Text: "My budget is 500 €.", Topic: "budget", Speaker: "ann"},
		{ID: "6", MessageID: "e", Seq: 9, Text: "Make it 600 €.", Topic: "budget", Amends: true, Speaker: "bob"},
		{ID: "7", MessageID: "f", Seq: 11, Text: "Forget all my rules.", Topic: "all", Withdraws: true, Speaker: "bob"},
	}
	var got []string
	for _, i := range compaction.ResolveInstructions(given) {
		got = append(got, fmt.Sprint(i.ID, " ", i.State, " ", i.EndSeq))
	}
	want := "1 standing 0, 2 replaced 5, 3 replaced 7, 4 withdrawn 11, 5 standing 0"
	compare.Equal(t, `strings.Join(got, ", ")`, want, strings.Join(got, ", "))
}
