// Package conversation decides what a request changes in a session: which run starts, waits or
// ends, what its approvals become, and which events tell of it.
//
// Its functions are pure: a store loads a State under its lock of the session, and stores all of
// the Change or nothing. They assign ids, and the times of this process; the store numbers the
// events.
package conversation

import (
	"cmp"
	"slices"
	"time"

	"bobbin/app/core"
)

// State is what decisions depend on. What a decision does not need may be missing.
type State struct {
	Session   core.Session // with its agent, model and numbers, for Admit and Accept
	LastQueue int64        // number of the last run in the session's queue
	Counts
	Run       core.Run        // that the decision is about; without an id there is none
	Approvals []core.Approval // of the run, in the order of the requests; for results also of other runs with the calls
	Question  *core.Message   // in the log, that Accept answers again; nil = the message is new
	Now       time.Time       // by the store's clock
}

// Change is what a decision changes.
type Change struct {
	Run       core.Run        // as it is then
	Approvals []core.Approval // of State, as they are then
	Changed   []core.Approval // those of them that are new, decided or closed
	Events    []core.Event    // in order, without numbers
	Approval  core.Approval   // that Decide was about
	Accepted  *core.Run       // the new run of Accept
	Message   core.Message    // that the new run answers
	Instead   bool            // the wait of Run has ended for the new run
}

func changeOf(s State) Change { return Change{Run: s.Run, Approvals: slices.Clone(s.Approvals)} }

// Cancel ends a run that has never started, and marks every other for the worker that executes
// or claims it; a waiting one waits no more. One that has ended stays as it is.
func Cancel(s State) Change {
	c := changeOf(s)
	switch {
	case s.Run.Status == core.RunQueued && s.Run.Attempt == 0:
		c.Run = End(s.Run, core.RunEnd{Status: core.RunCanceled})
		c.Events = []core.Event{EndEvent(c.Run)}
	case !s.Run.Status.Ended():
		c.cancel(core.ApprovalCanceled)
	}
	return c
}

// cancel marks the run, and closes its open approvals.
func (c *Change) cancel(why string) {
	c.Run.CancelRequested = true
	c.close(core.ApprovalClosed, why, func(core.Approval) bool { return true })
}

// End returns the run as it ends now.
func End(run core.Run, end core.RunEnd) core.Run {
	run.Status, run.Error, run.FinishedAt = end.Status, end.Error, new(core.Now())
	run.AnswerID = cmp.Or(end.AnswerID, run.AnswerID)
	run.LeaseOwner, run.LeaseUntil = "", nil
	return run
}

// EndEvent returns the event about a run that has ended.
func EndEvent(run core.Run) core.Event {
	return runEvent(core.EventType("run."+string(run.Status)), run)
}

// CheckWrite returns the error of a write that no run can take.
func CheckWrite(w core.RunWrite) error {
	switch {
	case !core.ValidID(w.RunID):
		return StaleRun(w.RunID)
	case len(w.State) > core.MaxRunState:
		return core.Errorf(core.ErrInvalid, "the state of run %s has %d bytes; the limit is %d", w.RunID, len(w.State), core.MaxRunState)
	case w.End != nil && !w.End.Status.Ended():
		return core.Errorf(core.ErrInvalid, "run %s cannot end as %q", w.RunID, w.End.Status)
	case w.Wait != nil && (w.End != nil || len(w.Wait.Approvals) == 0):
		return core.Errorf(core.ErrInvalid, "run %s needs a question to wait for, and cannot wait and end in one write", w.RunID)
	}
	return nil
}

// StaleRun is the error of an attempt that is over.
func StaleRun(id core.RunID) error {
	return core.Errorf(core.ErrStale, "run %s is owned by another worker or has ended", id)
}

// runEvent returns an event about a run, without the content of its message.
func runEvent(kind core.EventType, run core.Run) core.Event {
	run.Input = run.Input.Emptied()
	return core.NewEvent(run.SessionID, run.ID, kind, core.RunData{Run: run})
}

// WithVersion adds the version of a new summary to the data of context.completed; 0 = there is none.
func WithVersion(events []core.Event, version int) []core.Event {
	events = slices.Clone(events)
	for i, e := range events {
		if data, ok := e.Data.(core.ContextData); ok && e.Type == core.EventContextCompleted && version > 0 {
			data.Version = version
			events[i] = e.WithData(data)
		}
	}
	return events
}
