package records

import (
	"slices"
	"strings"

	"bobbin/app/core"
)

// Found is what the checks counted.
type Found struct {
	Answered, Canceled, Failed, Doubled, Lost int // runs
	Resumed, Attempts                         int // runs with several attempts; the most of one
	Messages, Results, Events                 int
	Asked                                     int // questions whether a tool may start
	Accepted                                  int // messages
}

// Rules are what may become of runs besides an answer.
type Rules struct {
	Canceled  bool                // a run may be canceled
	Withdrawn bool                // also before its turn
	Failed    func(core.Run) bool // a run may fail like this; nil = none may
}

// Check checks one session.
type Check struct {
	Record
	Rules

	Found  *Found                           // is added to
	Errorf func(format string, args ...any) // is told what is wrong
}

// Whole checks everything that can be said of a session by itself.
func (c *Check) Whole() {
	c.Numbers()
	c.Order()
	c.Everything()
	c.Approvals()
	c.Versions()
	c.Coverage()
}

// Numbers checks that seq, event_seq and queue_seq have no gaps, and that the session
// knows the last ones.
func (c *Check) Numbers() {
	for i, m := range c.Messages {
		if m.Seq != int64(i+1) {
			c.Errorf("message %d in order has seq %d", i+1, m.Seq)
		}
	}
	for i, e := range c.Events {
		if e.Seq != int64(i+1) {
			c.Errorf("event %d in order has number %d", i+1, e.Seq)
		}
	}
	for i, r := range c.Runs {
		if r.QueueSeq != int64(i+1) {
			c.Errorf("run %d in order has queue_seq %d", i+1, r.QueueSeq)
		}
	}
	s := c.Session
	if s.LastSeq != int64(len(c.Messages)) || s.MessageCount != len(c.Messages) || s.LastEventSeq != int64(len(c.Events)) {
		c.Errorf("the session counts %d messages, last seq %d, last event %d; there are %d messages and %d events",
			s.MessageCount, s.LastSeq, s.LastEventSeq, len(c.Messages), len(c.Events))
	}
	c.Found.Messages += len(c.Messages)
	c.Found.Events += len(c.Events)
}

// Order checks that the order of the log is that of acceptance, and that runs do not
// mix. Every message was told of once, in order, and every run begins and ends once.
func (c *Check) Order() {
	queue := map[core.RunID]int64{}
	for _, r := range c.Runs {
		queue[r.ID] = r.QueueSeq
	}
	var last int64
	var logged []core.MessageID
	for _, m := range c.Messages {
		now := queue[m.RunID]
		if now < last || m.Role == core.RoleUser && now == last {
			c.Errorf("message %d (%s) of run %d comes after one of run %d", m.Seq, m.Role, now, last)
		}
		last = max(now, last)
		logged = append(logged, m.ID)
	}
	var told []core.MessageID
	begun, ended := map[core.RunID]int{}, map[core.RunID]int{}
	for _, e := range c.Events {
		switch e.Type {
		case core.EventMessageCreated:
			told = append(told, Decoded[core.MessageData](e).Message.ID)
		case core.EventRunStarted:
			begun[e.RunID]++
		case core.EventRunWaiting:
			begun[e.RunID]-- // it begins again when somebody has decided
		case core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
			ended[e.RunID]++
		}
	}
	if !slices.Equal(told, logged) {
		c.Errorf("message.created came for %d messages, not in order or not for the %d that are in the log", len(told), len(logged))
	}
	for _, r := range c.Runs {
		want := 1
		if c.unstarted(r) {
			want = 0
		}
		if begun[r.ID] != want || ended[r.ID] != 1 {
			c.Errorf("run %d began %d times and ended %d times by its events, want %d and 1", r.QueueSeq, begun[r.ID], ended[r.ID], want)
		}
	}
}

// unstarted reports whether the run was canceled before its turn: its message never
// enters the log.
func (c *Check) unstarted(r core.Run) bool {
	return c.Withdrawn && r.Status == core.RunCanceled && r.StartedAt == nil
}

// Everything checks each run: a question, tool calls with their results, and one answer.
func (c *Check) Everything() {
	own := map[core.RunID][]core.Message{}
	for _, m := range c.Messages {
		own[m.RunID] = append(own[m.RunID], m)
		if m.Role == core.RoleTool {
			c.Found.Results++
		}
	}
	for _, r := range c.Runs {
		if r.Attempt > 1 {
			c.Found.Resumed++
			c.Found.Attempts = max(c.Found.Attempts, r.Attempt)
		}
		c.run(r, own[r.ID])
		delete(own, r.ID)
	}
	for run, messages := range own {
		c.Errorf("%d messages are of no run (%q)", len(messages), run)
	}
}

// run checks a run's messages.
func (c *Check) run(r core.Run, own []core.Message) {
	if c.unstarted(r) && len(own) == 0 {
		c.Found.Canceled++
		return
	}
	if len(own) == 0 || own[0].Role != core.RoleUser || own[0].ID != r.UserMessageID || own[0].Content != r.Input.Content {
		c.Errorf("run %d (%s) does not begin with its question: %d messages", r.QueueSeq, r.Status, len(own))
		c.Found.Lost++
		return
	}
	var open []string // tool calls without a result, in order
	var answers []core.Message
	for _, m := range own[1:] {
		switch {
		case m.Role == core.RoleTool && len(open) > 0 && m.ToolCallID == open[0]:
			open = open[1:]
		case m.Role == core.RoleAssistant && len(open) == 0 && len(answers) == 0:
			for _, c := range m.ToolCalls {
				open = append(open, c.ID)
			}
			if len(m.ToolCalls) == 0 {
				answers = append(answers, m)
			}
		default:
			c.Errorf("run %d: message %d (%s) is out of place", r.QueueSeq, m.Seq, m.Role)
			if m.Role == core.RoleUser || m.Role == core.RoleAssistant {
				c.Found.Doubled++
			}
		}
	}
	if len(open) > 0 {
		c.Errorf("run %d: the tool calls %v have no result", r.QueueSeq, open)
	}
	c.end(r, answers)
}

// end checks that a run succeeded with the answer to its own question, or ended as the
// rules allow.
func (c *Check) end(r core.Run, answers []core.Message) {
	switch {
	case r.Status == core.RunCanceled && c.Canceled:
		c.Found.Canceled++
		return
	case r.Status == core.RunFailed:
		c.Found.Failed++
		if c.Failed == nil || !c.Failed(r) || len(answers) > 0 {
			c.Errorf("run %d (%s) failed in attempt %d with %d answers: %+v", r.QueueSeq, r.ID, r.Attempt, len(answers), r.Error)
		}
		return
	case r.Status != core.RunSucceeded || len(answers) == 0:
		c.Errorf("run %d (%s) is %s with %d answers, want an answer", r.QueueSeq, r.ID, r.Status, len(answers))
		c.Found.Lost++
		return
	}
	a := answers[0]
	if a.ID != r.AnswerID || a.Status != core.MessageComplete || !IsAnswer(a.Content, r.Input.Content) {
		c.Errorf("run %d (%s): its answer %s is %s, %.60q; the run says %s", r.QueueSeq, r.ID, a.ID, a.Status, a.Content, r.AnswerID)
	}
	c.Found.Answered++
}

// IsAnswer reports whether the text is what tests/provider answers to the question. One
// before it that was left without an answer is told in the same message.
func IsAnswer(text, question string) bool {
	return strings.HasPrefix(text, "answer to: ") && strings.HasSuffix(text, question)
}

// Sent is a message that somebody sent.
type Sent struct {
	Session core.SessionID
	ID      string // client_message_id, or Idempotency-Key
	Content string
	Run     core.RunID // that the sender was told; empty = it gave up before
}

// Sent checks that what was accepted of all that was sent, by its id, is there once, with the run
// that its sender was told, and that what is there was sent.
func (c *Check) Sent(all map[string]*Sent) {
	runs, questions := map[string][]core.Run{}, map[string]int{}
	for _, r := range c.Runs {
		runs[r.ClientMessageID] = append(runs[r.ClientMessageID], r)
	}
	for _, m := range c.Messages {
		if m.Role == core.RoleUser {
			questions[m.ClientMessageID]++
		}
	}
	for id, s := range all {
		if s.Session != c.Session.ID || s.Run == "" && len(runs[id])+questions[id] == 0 {
			continue
		}
		c.Found.Accepted++
		want := 1
		if len(runs[id]) == 1 && c.unstarted(runs[id][0]) {
			want = 0
		}
		if len(runs[id]) != 1 || questions[id] != want {
			c.Errorf("message %s has %d runs and is %d times in the log, want 1 and %d", id, len(runs[id]), questions[id], want)
			c.Found.Lost += max(1-len(runs[id]), want-questions[id], 0)
			c.Found.Doubled += max(len(runs[id])-1, questions[id]-want, 0)
			continue
		}
		if r := runs[id][0]; s.Run != "" && r.ID != s.Run || r.Input.Content != s.Content {
			c.Errorf("message %s: its run is %s with %.40q, its sender was told %s for %.40q", id, r.ID, r.Input.Content, s.Run, s.Content)
		}
	}
	for id := range runs {
		if all[id] == nil {
			c.Errorf("nobody sent message %q", id)
		}
	}
}
