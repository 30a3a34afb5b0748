package crash_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/provider"
)

// TestRunThatKillsItsProcess: one run ends each process that executes it. Others at work die
// with it, one of them three times; they are all answered. The one that kills ends as failed,
// and once its cause is gone a person can try it again.
func TestRunThatKillsItsProcess(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		d := newDeadly(t, p)
		poison := d.send(t, "poison")
		var innocents []core.Run
		for i := range 5 {
			innocents = append(innocents, d.send(t, fmt.Sprintf("innocent%d", i)))
		}
		everybody := []string{"poison", "innocent0", "innocent1", "innocent2", "innocent3", "innocent4"}
		d.die(t, everybody) // in company
		d.die(t, everybody)
		for _, name := range everybody[2:] {
			close(d.answers[name])
		}
		d.die(t, []string{"poison", "innocent0"}) // suspects, beside a few others
		close(d.answers["innocent0"])
		innocents = append(innocents, d.send(t, "fresh"))
		d.die(t, []string{"poison"}) // alone

		got := d.ended(t, poison)
		if got.Status != core.RunFailed || got.Error == nil || got.Error.Code != "gave_up" {
			t.Errorf("the run that kills: got %s with error %+v, want it failed with gave_up", got.Status, got.Error)
		}
		for _, run := range innocents {
			if got := d.ended(t, run); got.Status != core.RunSucceeded {
				t.Errorf("the run %q: got %s with error %+v, want it answered", run.Input.Content, got.Status, got.Error)
			}
		}
		if n := len(d.prompted); n != 0 {
			t.Errorf("the run that kills was executed %d more times", n)
		}
		close(d.answers["poison"])
		again, err := d.client.RegenerateAndWait(t.Context(), core.Regenerate{SessionID: poison.SessionID, MessageID: poison.UserMessageID})
		if err != nil || again.Run.Status != core.RunSucceeded {
			t.Errorf("tried again by hand: got %+v, %v, want an answer", again.Run, err)
		}
		d.stop(t)
	})
}

// deadly is a Bobbin that is killed while one of its runs executes.
type deadly struct {
	*bobbin
	client   *client.Client
	prompted chan string              // names of runs whose prompt the provider has
	answers  map[string]chan struct{} // closed when a run is to be answered; the names are fixed
}

func newDeadly(t *testing.T, p place) *deadly {
	t.Helper()
	d := &deadly{prompted: make(chan string, 100), answers: map[string]chan struct{}{"poison": make(chan struct{})}}
	for i := range 5 {
		d.answers[fmt.Sprintf("innocent%d", i)] = make(chan struct{})
	}
	ended := make(chan struct{})
	model, err := provider.New(provider.Options{Window: modelWindow, At: func(at provider.Point, a provider.Asked) {
		answer := d.answers[a.Question]
		if at != provider.PointPrompt || answer == nil {
			return
		}
		select {
		case <-answer:
			return
		default:
		}
		d.prompted <- a.Question
		select {
		case <-answer:
		case <-ended:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	t.Cleanup(func() { close(ended) })
	d.bobbin = newBobbin(t, p, model.URL)
	d.start(t)
	d.client = d.bobbin.client(t)
	return d
}

// send sends a message in a session of its own.
func (d *deadly) send(t *testing.T, content string) core.Run {
	t.Helper()
	session, err := d.client.CreateSession(t.Context(), core.Session{})
	if err != nil {
		t.Fatal(err)
	}
	run, err := d.client.SendAsync(t.Context(), core.SendMessage{SessionID: session.ID, Content: content})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// die kills the process when the provider has the prompts of all these runs, and starts it
// again.
func (d *deadly) die(t *testing.T, names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for missing := slices.Clone(names); len(missing) > 0; {
		select {
		case name := <-d.prompted:
			missing = slices.DeleteFunc(missing, func(n string) bool { return n == name })
		case <-ctx.Done():
			t.Fatalf("the runs %v are not executed %s after the start", missing, patience)
		}
	}
	d.kill()
	for len(d.prompted) > 0 { // of runs that died with it
		<-d.prompted
	}
	d.start(t)
}

// ended returns a run when it has ended.
func (d *deadly) ended(t *testing.T, run core.Run) core.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		got, err := d.client.Run(ctx, run.ID)
		if err != nil {
			t.Fatalf("the run %q: %v", run.Input.Content, err)
		}
		if got.Status.Ended() {
			return got
		}
		pause(ctx, 50*time.Millisecond)
	}
}
