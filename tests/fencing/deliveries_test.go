package fencing_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/app/deliveries"
)

// told is what a process does with deliveries.
type told struct {
	core.NoObserver
	send    func(d core.Delivery) error
	refused chan core.WorkKind
	settled chan core.DeliveryState
}

func (o *told) Send(_ context.Context, d core.Delivery) error          { return o.send(d) }
func (o *told) Delivery(_ core.DeliveryKind, state core.DeliveryState) { o.settled <- state }
func (o *told) Refused(kind core.WorkKind)                             { o.refused <- kind }

// deliver starts a process that delivers; it ends with the test.
func (w *world) deliver(worker string, send func(core.Delivery) error) *told {
	w.t.Helper()
	o := &told{send: send, refused: make(chan core.WorkKind, 1), settled: make(chan core.DeliveryState, 1)}
	s := deliveries.New(deliveries.Options{
		Store: repositories.NewDeliveries(w.db.Gorm), SendWebhook: o.Send, Feed: quiet{}, Worker: worker, Concurrent: 4, Logger: slog.New(slog.DiscardHandler), Observer: o,
	})
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		if err := s.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() {
		cancel()
		done.Wait()
	})
	return o
}

// A process that hangs while it delivers: another one delivers when the lease is past,
// with the same id, and what the first one learns at last changes nothing.
func TestLateDelivery(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	session := w.session(&core.Webhook{URL: "https://a.example/hook"})
	accepted, err := w.runs.Accept(t.Context(), owner(), core.AcceptRun{SessionID: session.ID, Agent: "assistant", Worker: "w/1"})
	if err != nil {
		t.Fatal(err)
	}
	run := accepted.Run
	m := message(run, core.RoleAssistant, "an answer")
	_, err = w.runs.Write(t.Context(), core.RunWrite{
		RunID: run.ID, SessionID: session.ID, Attempt: 1, Messages: []core.Message{m}, End: &core.RunEnd{Status: core.RunSucceeded, AnswerID: m.ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	begun, wake := make(chan core.Delivery), make(chan struct{})
	slow := w.deliver("slow/1", func(d core.Delivery) error {
		begun <- d
		<-wake
		return &core.DeliveryError{Reason: "gone", Final: true} // it would give it up
	})
	first := <-begun
	w.lapse("deliveries")
	ids := make(chan core.DeliveryID, 10)
	quick := w.deliver("quick/1", func(d core.Delivery) error {
		ids <- d.ID
		return nil
	})
	if got := <-quick.settled; got != core.DeliveryDelivered || <-ids != first.ID {
		t.Errorf("the quick process: got it %s, want the same one delivered", got)
	}
	close(wake)
	if got := <-slow.refused; got != core.WorkKind(core.DeliveryWebhook) {
		t.Errorf("the slow process: got a refused %s", got)
	}
	list, err := repositories.NewDeliveries(w.db.Gorm).List(t.Context(), owner(), run.ID)
	if err != nil || len(list) != 1 || list[0].State != core.DeliveryDelivered || list[0].Attempt != 2 || list[0].Error != "" {
		t.Errorf("got %+v, %v, want it delivered at the second attempt", list, err)
	}
	if got := slices.DeleteFunc(w.types(session.ID), func(e core.EventType) bool { return e != core.EventDeliveryUpdated }); len(got) != 1 || len(slow.settled)+len(ids) != 0 {
		t.Errorf("got %d events and %d more deliveries, want one event and none", len(got), len(ids))
	}
}
