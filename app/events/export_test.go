package events

import "bobbin/app/core"

// Wire is a bus as between processes: all that it brings was encoded.
type Wire struct{ *Local }

// PublishEvent publishes the encoded event.
func (w Wire) PublishEvent(subject string, e core.Event) error {
	raw, err := encode(e)
	if err != nil {
		return err
	}
	return w.Publish(subject, raw)
}

// SignalLoss tells all subscribers that messages may have been lost.
func (l *Local) SignalLoss() { l.signalLoss() }

// Subscribers returns the number of subjects with open subscriptions.
func (l *Local) Subscribers() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.subs)
}
