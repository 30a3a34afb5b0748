package e2e_test

import (
	"encoding/json"
	"iter"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
)

// newSession makes a session.
func newSession(t testing.TB, c *client.Client, s core.Session) core.SessionID {
	t.Helper()
	made, err := c.CreateSession(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return made.ID
}

// data reads what an event carries.
func data[T any](t testing.TB, e core.Event) T {
	t.Helper()
	var d T
	if err := json.Unmarshal(e.Data, &d); err != nil {
		t.Fatalf("event %s: %v", e.Type, err)
	}
	return d
}

// told is what the stream of one run told.
type told struct {
	run      core.Run // as its last event has it
	events   []core.Event
	deltas   int
	streamed int                       // assistant messages that came as deltas before they were stored
	messages []core.Message            // created, in order
	texts    map[core.MessageID]string // put together from the deltas
	asked    core.Message              // the user's message
	answer   core.Message              // the last assistant message
}

// listen reads a run's stream to its end and checks what every stream promises:
// ascending numbers, the end last, and deltas that amount to the stored messages.
// A message that was stored before the stream began comes without deltas.
func listen(t testing.TB, stream iter.Seq2[core.Event, error]) told {
	t.Helper()
	got := told{texts: map[core.MessageID]string{}}
	var last int64
	for e, err := range stream {
		if err != nil {
			t.Fatalf("stream: %v", err)
		}
		if got.run.Status.Ended() {
			t.Errorf("got %s after the end of the run", e.Type)
		}
		if e.Seq > 0 && e.Seq <= last {
			t.Errorf("got event %d after event %d", e.Seq, last)
		}
		last = max(last, e.Seq)
		got.take(t, e)
	}
	if !got.run.Status.Ended() {
		t.Errorf("the stream ended after %d events without the end of the run", len(got.events))
	}
	return got
}

// take notes one event.
func (g *told) take(t testing.TB, e core.Event) {
	t.Helper()
	g.events = append(g.events, e)
	switch e.Type {
	case core.EventMessageDelta:
		d := data[core.DeltaData](t, e)
		if d.Offset != len(g.texts[d.MessageID]) {
			t.Errorf("got a delta at offset %d, want %d", d.Offset, len(g.texts[d.MessageID]))
		}
		g.texts[d.MessageID] += d.Text
		g.deltas++
	case core.EventMessageDiscarded:
		delete(g.texts, data[core.DiscardedData](t, e).MessageID)
	case core.EventMessageCreated:
		m := data[core.MessageData](t, e).Message
		g.messages = append(g.messages, m)
		switch m.Role {
		case core.RoleUser:
			g.asked = m
		case core.RoleAssistant:
			g.answer = m
			if text := g.texts[m.ID]; text != "" && text != m.Content {
				t.Errorf("message #%d: got the deltas %.80q, want the stored %.80q", m.Seq, text, m.Content)
			} else if text != "" {
				g.streamed++
			}
		}
	case core.EventRunStarted, core.EventRunSucceeded, core.EventRunFailed, core.EventRunCanceled:
		g.run = data[core.RunData](t, e).Run
	}
}

// say sends a message, listens to its run, and wants it to succeed.
func say(t testing.TB, c *client.Client, m core.SendMessage) told {
	t.Helper()
	got := listen(t, c.Send(t.Context(), m))
	if got.run.Status != core.RunSucceeded {
		t.Fatalf("message %.60q: got the run %s (%+v), want it succeeded", m.Content, got.run.Status, got.run.Error)
	}
	return got
}

// messages returns the whole log and checks that its seq has no gap.
func messages(t testing.TB, c *client.Client, id core.SessionID) []core.Message {
	t.Helper()
	var all []core.Message
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page, err := c.Messages(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	for i, m := range all {
		if m.Seq != int64(i+1) {
			t.Fatalf("the log has a gap: message %d has the seq %d", i+1, m.Seq)
		}
		if i > 0 && m.ParentID != all[i-1].ID {
			t.Errorf("message #%d: got the parent %s, want the message before it", m.Seq, m.ParentID)
		}
	}
	return all
}

// kinds counts the four kinds of messages.
func kinds(all []core.Message) map[string]int {
	n := map[string]int{}
	for _, m := range all {
		switch {
		case m.Role == core.RoleAssistant && len(m.ToolCalls) > 0:
			n["tool calls"]++
		case m.Role == core.RoleAssistant:
			n["answers"]++
		case m.Role == core.RoleUser:
			n["questions"]++
		case m.Role == core.RoleTool:
			n["tool results"]++
		default:
			n[string(m.Role)]++
		}
	}
	return n
}

// session returns the session as it is now.
func session(t testing.TB, c *client.Client, id core.SessionID) core.Session {
	t.Helper()
	s, err := c.Session(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// contextOf returns a session's context report, held against the log and the
// prompt view.
func contextOf(t testing.TB, c *client.Client, id core.SessionID) core.ContextReport {
	t.Helper()
	r, err := c.Context(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	view, err := c.Prompt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s := session(t, c, id)
	for what, pair := range map[string][2]int{
		"sections and used":               {sections(r, "system", "tools", "summary", "pinned", "tail", "run"), r.Used},
		"used and the prompt view":        {r.Used, view.Tokens},
		"tail, run and the view's":        {sections(r, "tail", "run"), sizes(view)},
		"window and its parts":            {r.Window, r.Used + r.Reserve + r.Free},
		"coverage and the session":        {r.Coverage.Messages, s.MessageCount},
		"summarized and the session":      {r.Coverage.Summarized, s.SummarizedCount},
		"lost and none":                   {r.Coverage.Lost, 0},
		"output limits":                   {r.MaxOutput, view.MaxOutputTokens},
		"coverage and its parts":          {parts(r.Coverage), r.Coverage.Messages},
		"messages shown and those placed": {shown(view), r.Coverage.Verbatim + r.Coverage.Masked + r.Coverage.Shortened},
	} {
		if pair[0] != pair[1] {
			t.Errorf("context: %s differ: %d and %d", what, pair[0], pair[1])
		}
	}
	if r.Used > r.Usable {
		t.Errorf("context: got %d tokens used, usable are %d", r.Used, r.Usable)
	}
	return r
}

func sections(r core.ContextReport, names ...string) int {
	n := 0
	for _, s := range r.Sections {
		for _, name := range names {
			if s.Name == name {
				n += s.Tokens
			}
		}
	}
	return n
}

func sizes(view core.PromptView) int {
	n := 0
	for _, m := range view.Messages {
		n += m.Tokens
	}
	return n
}

func shown(view core.PromptView) int {
	n := 0
	for _, m := range view.Messages {
		if m.MessageID != "" {
			n++
		}
	}
	return n
}

func parts(c core.Coverage) int {
	return c.Summarized + c.Compacted + c.Verbatim + c.Masked + c.Shortened + c.LeftOut + c.Excluded
}
