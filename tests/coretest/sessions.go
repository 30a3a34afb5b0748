package coretest

import (
	"cmp"
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// Sessions are the sessions of a Store.
type Sessions struct {
	core.SessionStore // the methods that no test calls
	s                 *Store
}

// Create stores a new session.
func (r Sessions) Create(ctx context.Context, in core.Session) (core.Session, error) {
	err := r.s.transact(ctx, "Create", func() error {
		in.ID = cmp.Or(in.ID, core.NewID[core.SessionID]())
		switch {
		case in.Owner == "":
			return core.Errorf(core.ErrInvalid, "a session needs an owner")
		case r.s.conversations[in.ID] != nil:
			return core.Errorf(core.ErrConflict, "session %s exists", in.ID)
		}
		in.Status, in.CreatedAt = core.SessionIdle, cmp.Or(in.CreatedAt, core.Now())
		in.UpdatedAt = cmp.Or(in.UpdatedAt, in.CreatedAt)
		in = in.WithExpiry()
		r.s.conversations[in.ID] = &Conversation{Session: in}
		return nil
	})
	return in, err
}

// Get returns a session.
func (r Sessions) Get(ctx context.Context, tenant core.Tenant, id core.SessionID) (out core.Session, err error) {
	err = r.s.inSession(ctx, "Sessions.Get", tenant, id, func(c *Conversation) error {
		out = r.s.withRuns(c)
		return nil
	})
	return out, err
}

// withRuns returns the session with the state of its runs.
func (s *Store) withRuns(c *Conversation) core.Session {
	out := c.Session
	for _, r := range s.runsOf(out.ID) {
		switch {
		case isActive(r):
			out.Status, out.ActiveRunID = core.SessionStatus(r.Status), r.ID
			for _, a := range s.approvals[r.ID] {
				if a.Status == core.ApprovalOpen {
					out.OpenApprovals++
				}
			}
		case r.Status == core.RunQueued && out.ActiveRunID == "":
			out.Status, out.ActiveRunID = core.SessionQueued, r.ID
		}
	}
	return out
}

// Update changes a session. It knows the texts and the metadata of a patch.
func (r Sessions) Update(ctx context.Context, tenant core.Tenant, id core.SessionID, p core.SessionPatch) (out core.Session, events []core.Event, err error) {
	err = r.s.inSession(ctx, "Update", tenant, id, func(c *Conversation) error {
		changed := len(p.Metadata) > 0 || p.Keep && c.Session.Temporary
		if len(p.Metadata) > 0 {
			c.Session.Metadata = p.Metadata
		}
		if p.Archived != nil && *p.Archived != (c.Session.ArchivedAt != nil) {
			changed, c.Session.ArchivedAt = true, nil
			if now := core.Now(); *p.Archived {
				c.Session.ArchivedAt = &now
			}
		}
		if p.Keep {
			c.Session.Temporary, c.Session.ExpiresAt = false, nil
		}
		for field, value := range map[*string]*string{
			&c.Session.Title: p.Title, &c.Session.Agent: p.Agent, &c.Session.Model: p.Model,
			&c.Session.Timezone: p.Timezone, &c.Session.Instructions: p.Instructions,
		} {
			if value != nil {
				*field, changed = *value, true
			}
		}
		if changed {
			c.Session.UpdatedAt = core.Now()
			c.emit(core.NewEvent(id, "", core.EventSessionUpdated, core.SessionData{Session: r.s.withRuns(c)}))
		}
		out, events = r.s.withRuns(c), c.fresh
		return nil
	})
	return out, events, err
}

// Messages are the messages of a Store.
type Messages struct {
	core.MessageStore // the methods that no test calls
	s                 *Store
}

// Get returns a message of any branch, deleted or not.
func (r Messages) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, id core.MessageID) (out core.Message, err error) {
	err = r.s.inSession(ctx, "Messages.Get", tenant, session, func(c *Conversation) error {
		i := c.indexOf(id)
		if i < 0 {
			return core.Errorf(core.ErrNotFound, "message %s does not exist", id)
		}
		out = c.Messages[i]
		return nil
	})
	return out, err
}

// GetMessagesAfter returns the messages of the conversation after the given one.
func (r Messages) GetMessagesAfter(ctx context.Context, tenant core.Tenant, session core.SessionID, after core.MessageID) (out []core.Message, err error) {
	err = r.s.inSession(ctx, "GetMessagesAfter", tenant, session, func(c *Conversation) error {
		c.Cursors = append(c.Cursors, after)
		from := c.indexOf(after)
		if after != "" && from < 0 {
			return core.Errorf(core.ErrNotFound, "message %s does not exist", after)
		}
		out = c.withTexts(onPath(c.Messages[from+1:]))
		return nil
	})
	return out, err
}

// GetMessages returns the messages that exist.
func (r Messages) GetMessages(ctx context.Context, tenant core.Tenant, session core.SessionID, ids []core.MessageID) (out []core.Message, err error) {
	if session == "" {
		err = r.s.transact(ctx, "GetMessages", func() error {
			for _, c := range r.s.conversations {
				if c.Session.Owner == tenant.Owner && (tenant.User == "" || tenant.User == c.Session.UserID) && c.Session.ArchivedAt == nil {
					out = append(out, slices.DeleteFunc(slices.Clone(c.Messages), func(m core.Message) bool { return !slices.Contains(ids, m.ID) })...)
				}
			}
			return nil
		})
		return out, err
	}
	err = r.s.inSession(ctx, "GetMessages", tenant, session, func(c *Conversation) error {
		c.Loaded = append(c.Loaded, ids...)
		out = slices.DeleteFunc(slices.Clone(c.Messages), func(m core.Message) bool { return !slices.Contains(ids, m.ID) })
		return nil
	})
	return out, err
}

// Pinned returns the pinned messages of the conversation.
func (r Messages) Pinned(ctx context.Context, tenant core.Tenant, session core.SessionID) (out []core.Message, err error) {
	err = r.s.inSession(ctx, "Pinned", tenant, session, func(c *Conversation) error {
		out = c.withTexts(slices.DeleteFunc(onPath(c.Messages), func(m core.Message) bool { return !m.Pinned }))
		return nil
	})
	return out, err
}

// Refused returns the turns of the conversation that a provider has refused, and those with half answers.
func (r Messages) Refused(ctx context.Context, tenant core.Tenant, session core.SessionID) ([]core.RefusedTurn, error) {
	out := []core.RefusedTurn{}
	err := r.s.inSession(ctx, "Refused", tenant, session, func(c *Conversation) error {
		until := c.Session.LastSeq + 1
		for _, m := range slices.Backward(onPath(c.Messages)) {
			turn := core.RefusedTurn{Seq: m.Seq, Until: m.Seq + 1, Role: m.Role, FinishReason: m.FinishReason}
			if m.Role == core.RoleUser {
				turn.Until, until = until, m.Seq
			}
			if m.WasRefused() {
				out = slices.Insert(out, 0, turn)
			}
		}
		return nil
	})
	return out, err
}

// CountOnPath returns how many messages the conversation has up to a seq.
func (r Messages) CountOnPath(ctx context.Context, tenant core.Tenant, session core.SessionID, through int64) (n int, err error) {
	err = r.s.inSession(ctx, "CountOnPath", tenant, session, func(c *Conversation) error {
		n = len(slices.DeleteFunc(onPath(c.Messages), func(m core.Message) bool { return m.Seq > through }))
		return nil
	})
	return n, err
}

// onPath returns the messages that were not deleted and are on the current branch.
func onPath(messages []core.Message) []core.Message {
	return slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return !m.OnPath || m.DeletedAt != nil })
}

// withTexts returns the messages, the old ones without their texts (WithTexts).
func (c *Conversation) withTexts(messages []core.Message) []core.Message {
	if c.WithTexts > 0 {
		for i := range max(len(messages)-c.WithTexts, 0) {
			messages[i] = messages[i].WithoutTexts()
		}
	}
	return messages
}

// indexOf returns the index of a message; -1 = there is none.
func (c *Conversation) indexOf(id core.MessageID) int {
	if id == "" {
		return -1
	}
	return slices.IndexFunc(c.Messages, func(m core.Message) bool { return m.ID == id })
}

// appendMessages appends the messages that are not in the log yet, with their events, and
// returns all of them as stored.
func (c *Conversation) appendMessages(messages []core.Message, run core.RunID) []core.Message {
	from := len(c.Messages)
	out := c.insertMessages(messages, run)
	for _, m := range c.Messages[from:] {
		c.emit(core.NewEvent(c.Session.ID, m.RunID, core.EventMessageCreated, core.MessageData{Message: m}))
	}
	return out
}

// insertMessages is appendMessages without the events.
func (c *Conversation) insertMessages(messages []core.Message, run core.RunID) (out []core.Message) {
	messages = core.WithIDs(messages)
	fresh := slices.DeleteFunc(slices.Clone(messages), func(m core.Message) bool { return c.indexOf(m.ID) >= 0 })
	var parent core.MessageID
	if n := len(c.Messages); n > 0 {
		parent = c.Messages[n-1].ID
	}
	c.Session, fresh = conversation.Append(c.Session, fresh, parent, run)
	c.Messages = append(c.Messages, fresh...)
	for _, m := range messages {
		out = append(out, c.Messages[c.indexOf(m.ID)])
	}
	return out
}

// Events are the events of a Store.
type Events struct {
	core.EventStore // the methods that no test calls
	s               *Store
}

// Page returns the events after a number, and whether there may be more.
func (r Events) Page(ctx context.Context, session core.SessionID, after int64, limit int) (out []core.Event, more bool, err error) {
	err = r.s.transact(ctx, "Page", func() error {
		c := r.s.conversations[session]
		for _, e := range c.Events {
			if e.Seq > after && len(out) < limit {
				out = append(out, e)
			}
		}
		return nil
	})
	return out, len(out) == limit, err
}

// Last returns the number of the newest event.
func (r Events) Last(ctx context.Context, tenant core.Tenant, session core.SessionID) (out int64, err error) {
	err = r.s.inSession(ctx, "Last", tenant, session, func(c *Conversation) error {
		out = c.Session.LastEventSeq
		return nil
	})
	return out, err
}

// LastOf returns the numbers of the newest events of the sessions that exist.
func (r Events) LastOf(ctx context.Context, sessions []core.SessionID) (map[core.SessionID]int64, error) {
	out := map[core.SessionID]int64{}
	err := r.s.transact(ctx, "LastOf", func() error {
		for _, id := range sessions {
			if c := r.s.conversations[id]; c != nil {
				out[id] = c.Session.LastEventSeq
			}
		}
		return nil
	})
	return out, err
}

// Forget removes the session's events up to a number, as the retention does.
func (r Events) Forget(session core.SessionID, through int64) {
	r.s.Edit(func() {
		c := r.s.conversations[session]
		c.Events = slices.DeleteFunc(c.Events, func(e core.Event) bool { return e.Seq <= through })
		c.forgotten = through
	})
}
