package transfer

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
)

// Import reads a history and puts it at the end of the session, the whole of it or
// nothing. A summary is not made now but before the next answer, if it is needed. The
// end of ctx before the last of it is stored ends the import, and nothing is imported.
//
// Errors: ErrInvalid names the lines that are wrong, up to 20; ErrTooLarge;
// ErrConflict for a session that is answering a message, archived or busy, and for a
// client_message_id that it knows: a history with ids cannot come in twice;
// ErrNotFound. An owner's imports wait for each other, and after some seconds they are
// refused: ErrRateLimited, or ErrUnavailable when those of all owners are too many. What
// the body's reader returns is returned.
//
// The Body should come without delay: whoever waits for its bytes keeps the place.
func (s *Service) Import(ctx context.Context, tenant core.Tenant, in core.ImportMessages) (core.Imported, error) {
	session, err := s.Sessions.Get(ctx, tenant, in.SessionID)
	if err != nil {
		return core.Imported{}, err
	}
	if session.ArchivedAt != nil {
		return core.Imported{}, core.Errorf(core.ErrConflict, "session %s is archived and takes no messages", session.ID)
	}
	if session.Importing { // before the body is read
		return core.Imported{}, core.SessionBusy(session.ID, "a history is being imported into it")
	}
	place, memory := s.places.Hold(tenant), s.memory.Hold(tenant)
	defer place.Release()
	defer memory.Release()
	if err := place.Resize(ctx, 1); err != nil {
		return core.Imported{}, err
	}
	if err := s.Stored.AdmitCopy(ctx, tenant, 0); err != nil {
		return core.Imported{}, err
	}
	const kept = 3 // values of a message that stay in memory; others are dropped line by line
	values := min(in.Values, kept*s.Limits.Messages)
	if err := memory.Resize(ctx, core.JSONMemory(cmp.Or(in.Size, s.Limits.Import), values)); err != nil {
		return core.Imported{}, err
	}
	h, err := s.readHistory(ctx, in, "nothing was imported", func(size int64) error { return s.Stored.Admit(ctx, tenant, size) })
	if err != nil || len(h.messages) == 0 {
		return h.Imported, err
	}
	stored, err := s.storeMessages(ctx, tenant, core.AppendMessages{SessionID: in.SessionID, Messages: h.messages, Import: true, Worker: s.Worker})
	if err != nil {
		return core.Imported{}, err
	}
	h.FirstSeq, h.LastSeq = stored.FirstSeq, stored.LastSeq
	return h.Imported, nil
}

// Read returns the messages of a history as Import would store them, and stores
// nothing: only the Body, the Format and the Source of in are used. Errors are those
// of Import that are about the body.
func (s *Service) Read(ctx context.Context, in core.ImportMessages) ([]core.Message, core.Imported, error) {
	h, err := s.readHistory(ctx, in, "the history cannot be used", func(int64) error { return nil })
	return h.messages, h.Imported, err
}

// history is what was read of a history.
type history struct {
	core.Imported
	messages []core.Message
	users    int   // through the last one of a user
	stored   int64 // bytes that they count
	order    order
	faults   core.Faults
}

// readHistory reads and checks all of it, and asks whether so many bytes may be stored. Refused begins the error that
// names its faults.
func (s *Service) readHistory(ctx context.Context, in core.ImportMessages, refused string, admit func(size int64) error) (history, error) {
	var h history
	for e, err := range s.Limits.readEntries(in.Body, in.Format) {
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return history{}, err
		}
		if err := s.readMessage(&h, e, in.Source); err != nil {
			h.faults.Add(e.name, "%s", core.ShownMessage(err, "cannot be read"))
		}
		if len(h.faults) == core.MaxFaults {
			break
		}
		if len(h.messages) > s.Limits.Messages {
			return history{}, core.Errorf(core.ErrTooLarge, "the history has more than %d messages: import it in parts, cut between two questions", s.Limits.Messages)
		}
	}
	if len(h.faults) > 0 {
		if len(h.faults) == core.MaxFaults {
			refused += fmt.Sprintf(" (the first %d faults are named)", core.MaxFaults)
		}
		shown := h.faults[:min(len(h.faults), shownFaults)].Err()
		return history{}, &core.Error{Kind: core.ErrInvalid, Fields: h.faults, Message: refused + ": " + shown.Error()}
	}
	if err := admit(h.stored); err != nil {
		return history{}, err
	}
	for i := range h.messages {
		if err := ctx.Err(); err != nil {
			return history{}, err
		}
		h.messages[i].TokenCount = s.countTokens(h.messages[i])
		h.Tokens += h.messages[i].TokenCount
	}
	h.Imported.Imported = len(h.messages)
	return h, nil
}

// readMessage reads one message; an error says what is wrong with it.
func (s *Service) readMessage(h *history, e entry, source core.Source) error {
	if e.err != nil {
		h.order.unsure = true
		return e.err
	}
	t, err := readMessage(e.raw)
	if err != nil {
		h.order.unsure = true
		return err
	}
	messages := slices.DeleteFunc(append(t.results, separateThoughts(t.message)), saysNothing) // a message may have results alone
	if t.skip || len(messages) == 0 {
		h.Skipped++
		return nil
	}
	for _, m := range messages {
		m.Source, m.CreatedAt = cmp.Or(m.Source, source, core.SourceAPI), t.message.CreatedAt
		m, faults := s.Limits.checkMessage(m)
		m, err = h.order.placeNext(m)
		if len(faults) > 0 {
			err = faults[:min(len(faults), 3)].Err()
		}
		if err != nil {
			return err
		}
		if m.Role == core.RoleUser {
			h.users = len(h.messages) + 1
		} else if m.FinishReason == core.FinishContentFilter && h.users > 0 { // the answer to it was cut off
			h.messages[h.users-1].FinishReason = core.FinishRefused
		}
		h.messages, h.stored = append(h.messages, m), h.stored+m.StoredBytes()
	}
	h.LeftOut += t.leftOut
	return nil
}

// shownFaults is how many faults stand in the sentence; Fields has them all.
const shownFaults = 3

// order checks that every tool result stands behind the assistant's message that
// asked for it, as providers want it. Results in any order, and calls without a
// result, are right. The zero value is ready.
type order struct {
	open   map[string]int    // calls of the last assistant message without a result, by id
	tools  map[string]string // what they call
	unsure bool              // a message before could not be read: what refers to it is not to blame
	names  map[string]bool   // client message ids so far
}

// placeNext takes the next message and returns it with the name of its tool, or says
// what is wrong.
func (o *order) placeNext(m core.Message) (core.Message, error) {
	if id := m.ClientMessageID; id != "" {
		if o.names[id] {
			return m, core.Errorf(core.ErrInvalid, "client_message_id %s is there twice", id)
		}
		if o.names == nil {
			o.names = map[string]bool{}
		}
		o.names[id] = true
	}
	switch m.Role {
	case core.RoleTool:
		if o.open[m.ToolCallID] == 0 {
			if o.unsure {
				return m, nil
			}
			return m, core.Errorf(core.ErrInvalid,
				"tool_call_id %s: the assistant's message before has no such call that waits for its result", m.ToolCallID)
		}
		o.open[m.ToolCallID]--
		if m.ToolName == "" {
			m.ToolName = o.tools[m.ToolCallID]
		}
		return m, nil
	case core.RoleSystem: // stands in no prompt, so also between a call and its result
	default:
		o.open, o.tools, o.unsure = map[string]int{}, map[string]string{}, false
		for _, c := range m.ToolCalls {
			o.open[c.ID]++
			o.tools[c.ID] = c.Name
		}
	}
	return m, nil
}
