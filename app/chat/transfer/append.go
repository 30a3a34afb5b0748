package transfer

import (
	"cmp"
	"context"

	"bobbin/app/core"
)

// Append puts one message at the end of the session without running the agent, and
// returns it as it is in the log. A client_message_id that the session knows gives
// the message of the first time; repeated says so.
//
// ErrInvalid says what is wrong with which field. ErrConflict is for a session that
// is answering a message, or archived; ErrUnprocessable for a tool result whose call
// is not the last that was said.
func (s *Service) Append(ctx context.Context, tenant core.Tenant, id core.SessionID, m core.Message) (stored core.Message, repeated bool, err error) {
	if size := len(core.CleanText(m.Content)); size > s.limits.maxContent(m.Role) {
		return core.Message{}, false, core.Errorf(core.ErrTooLarge,
			"the message has %d bytes, at most %d are allowed: shorten it or send it in parts", size, s.limits.maxContent(m.Role))
	}
	m.Role, m.Source = cmp.Or(m.Role, core.RoleUser), cmp.Or(m.Source, core.SourceAPI)
	m, faults := s.limits.checkMessage(m)
	if err := faults.Err(); err != nil {
		return core.Message{}, false, err
	}
	m.TokenCount = s.counter.Message(m)
	out, err := s.storeMessages(ctx, tenant, core.AppendMessages{SessionID: id, Messages: []core.Message{m}})
	if err != nil {
		return core.Message{}, false, err
	}
	return out.Messages[0], out.Repeated, nil
}

// How many messages, and bytes of them, one transaction of AppendHistory stores.
const (
	historyRows  = 200
	historyBytes = 1 << 20
)

// AppendHistory stores the history that a client has and the log has not: at the end of the
// session, or on a branch as in.Branch says. If it fails, the messages before are stored, and
// they are the end of the current path. Errors as of Append.
func (s *Service) AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages) error {
	messages := in.Messages
	for i := range messages {
		m, faults := s.limits.checkMessage(messages[i])
		if err := faults.Err(); err != nil {
			return err
		}
		if len(m.Content) > s.limits.maxContent(m.Role) {
			return core.Errorf(core.ErrTooLarge, "a message of the history has %d bytes, at most %d are allowed", len(m.Content), s.limits.maxContent(m.Role))
		}
		m.TokenCount = s.counter.Message(m)
		messages[i] = m
	}
	for len(messages) > 0 {
		n := countHistoryStep(messages)
		in.Messages, messages = messages[:n], messages[n:]
		step := ctx
		if len(messages) > 0 { // the last step is the result of a request with a key
			step = core.WithoutKeyedWork(ctx)
		}
		if _, err := s.storeMessages(step, tenant, in); err != nil {
			return err
		}
		in.Branch = nil
	}
	return nil
}

// countHistoryStep returns how many of the messages one transaction stores: at least one.
func countHistoryStep(messages []core.Message) int {
	n, size := 0, 0
	for n < min(len(messages), historyRows) {
		if size += len(messages[n].Content); n > 0 && size > historyBytes {
			break
		}
		n++
	}
	return n
}
