package compaction_test

import (
	"errors"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/coretest"
)

// Beside runs: a failure at any call of the store, before or after it took
// effect, leaves the old or the new state, whether a summary is prepared, activated or
// made after a run. The next step finds what is left to do.
func TestRow18BackgroundFailureAtEachStoreCall(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timing  string
		ahead   bool // one is prepared before
		version int  // in use when all is done; 0 = one is prepared
		calls   int  // of the store, at least
	}{
		"prepare":   {"background", false, 0, 5},
		"activate":  {"background", true, 1, 5},
		"after run": {"after_run", false, 1, 5},
	} {
		begun := func() *world {
			size := near
			if tt.version > 0 {
				size = over
			}
			if !tt.ahead {
				w := grown(t, at("window", tt.timing), size)
				w.writer.Add(always(notes))
				return w
			}
			w := grown(t, at("window", tt.timing), near)
			w.writer.Add(always(notes))
			w.advance()
			w.grow(size)
			return w
		}
		for _, late := range []bool{false, true} {
			for n := 1; ; n++ {
				w := begun()
				before := w.state()
				made := w.failAt(n, late)
				err := w.keeper.SummarizeDue(t.Context(), w.scope(), w.Session.ID)
				if *made < n {
					if err != nil || *made < tt.calls {
						t.Fatalf("%s: got error %v with %d calls of the store, want a whole summary", name, err, *made)
					}
					break
				}
				if !errors.Is(err, errBroken) || errors.Is(err, core.ErrStale) {
					t.Errorf("%s, call %d, late %v: got error %v, want the store's", name, n, late, err)
				}
				if old := w.state() == before; !old && !w.stands(tt.version) {
					t.Errorf("%s, call %d, late %v: neither the old nor the new state: %s", name, n, late, w.state())
				}
				w.db.Before(nil)
				w.db.After(nil)
				w.Lease = coretest.Lease{}
				if w.advance(); !w.stands(tt.version) {
					t.Errorf("%s, call %d, late %v: got %s after the next look, want it done", name, n, late, w.state())
				}
				w.report()
			}
		}
	}
}

// advance advances the session as after a run.
func (w *world) advance() {
	w.t.Helper()
	if err := w.keeper.SummarizeDue(w.t.Context(), w.scope(), w.Session.ID); err != nil {
		w.t.Error(err)
	}
}

// stands reports whether the version is in use, or 0: one is prepared and none is, and
// whether it is whole.
func (w *world) stands(version int) bool {
	s, summaries, log := w.now()
	if len(summaries) != 1 || s.SummaryVersion != version {
		return false
	}
	v := summaries[0]
	if v.ThroughID != log[v.ThroughSeq-1].ID || v.MessagesCovered != int(v.ThroughSeq) || v.Content == "" {
		return false
	}
	if version == 0 {
		return v.State == core.SummaryPrepared && s.SummaryThroughSeq == 0 && s.ConversationSummary == nil
	}
	return v.State == core.SummaryActive && s.SummaryThroughSeq == v.ThroughSeq && *s.ConversationSummary == v.Content
}
