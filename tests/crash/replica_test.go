package crash_test

import (
	"os"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// TestRestartBesideAnother: of two replicas on one database one is killed in the middle
// of an answer. Its restart takes the run over at once; the other one, which would have
// to wait until the lease has passed, leaves it alone (life of a run).
func TestRestartBesideAnother(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	p := place{den.Temp(t), dbtest.PostgresURL(t)}
	g := newGrace(t, p, "30s")
	model, err := provider.New(provider.Options{Window: modelWindow})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	other := newBobbin(t, place{den.Temp(t), p.database}, model.URL)
	other.start(t)
	w := watchRaw(t, g.bobbin, g.session)
	c := g.client(t)
	run, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: g.session, Content: "Are you there?"})
	if err != nil {
		t.Fatal(err)
	}
	w.await(t, "half of the answer", func(f frame) bool { return f.event == core.EventMessageDelta })
	g.kill()
	g.release()
	g.start(t)
	w.await(t, "the end of the run", func(f frame) bool { return f.event == core.EventRunSucceeded })
	checkOneAnswer(t, p, c, run)
	taken := `msg="run taken over" run_id=` + string(run.ID)
	for b, want := range map[*bobbin]bool{g.bobbin: true, other: false} {
		raw, err := os.ReadFile(b.log)
		if err != nil || strings.Contains(string(raw), taken) != want || strings.Contains(string(raw), "same replica name") {
			t.Errorf("%v: taken over by the restart: want %t:\n%s", err, want, raw)
		}
	}
	other.stop(t)
	g.stop(t)
}
