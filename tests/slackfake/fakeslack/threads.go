package fakeslack

import (
	"slices"
	"strings"
)

// threadKey is a thread of a workspace.
type threadKey struct{ team, channel, ts string }

// ThreadState is what the app shows beside a thread.
type ThreadState struct {
	Session string // status of the agent session: active, processing, suspended or closed
}

// ThreadState returns what the app shows beside a thread.
func (w *Workspace) ThreadState(channel, ts string) ThreadState {
	w.server.mu.Lock()
	defer w.server.mu.Unlock()
	return *w.threadState(channel, ts)
}

func (w *Workspace) threadState(channel, ts string) *ThreadState {
	key := threadKey{w.ID, channel, ts}
	state := w.server.threadStates[key]
	if state == nil {
		state = &ThreadState{}
		w.server.threadStates[key] = state
	}
	return state
}

// findThread returns the state of the thread that the call names.
func (c *call) findThread() (*ThreadState, error) {
	channel, err := c.findChannel("channel_id")
	if err != nil {
		return nil, err
	}
	ts := c.args.text("thread_ts")
	if ts != "" && channel.findMessage(ts) == nil {
		return nil, failure{code: "thread_not_found"}
	}
	return c.ws.threadState(channel.ID, ts), nil
}

func sessionsSetStatus(c *call) (reply, error) {
	state, err := c.findThread()
	if err != nil {
		return nil, err
	}
	if err := c.setSessionStatus(c.args.text("channel_id"), c.args.text("thread_ts"), c.args.text("status")); err != nil {
		return nil, err
	}
	return reply{"status": state.Session, "agent_status": state.Session}, nil
}

// setSessionStatus moves an agent session to a status, which it creates if it is not there.
func (c *call) setSessionStatus(channel, ts, status string) error {
	if !slices.Contains(strings.Fields("active processing suspended closed"), status) {
		return failure{code: "invalid_status"}
	}
	c.ws.threadState(channel, ts).Session = status
	return nil
}
