package transfer

import (
	"cmp"
	"context"
	"iter"

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
	if size := len(core.CleanText(m.Content)); size > s.Limits.maxContent(m.Role) {
		return core.Message{}, false, core.Errorf(core.ErrTooLarge,
			"the message has %d bytes, at most %d are allowed: shorten it or send it in parts", size, s.Limits.maxContent(m.Role))
	}
	m.Role, m.Source = cmp.Or(m.Role, core.RoleUser), cmp.Or(m.Source, core.SourceAPI)
	m, faults := s.Limits.checkMessage(m)
	if err := faults.Err(); err != nil {
		return core.Message{}, false, err
	}
	if err := s.Stored.Admit(ctx, tenant, m.StoredBytes()); err != nil {
		return core.Message{}, false, err
	}
	m.TokenCount = s.countTokens(m)
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

// AppendHistory stores the messages of a history that a client has and the log has not: at the end
// of the session, or on a branch as in.Branch says. It goes through them twice, and no more than one
// transaction stores are in memory. If it fails, the messages before are stored, and they are the
// end of the current path. Errors as of Append.
func (s *Service) AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages, history iter.Seq[core.Message]) error {
	more, size := int64(0), 0
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return err
		}
		more += m.StoredBytes()
	}
	if err := s.Stored.Admit(ctx, tenant, more); err != nil {
		return err
	}
	store := func(ctx context.Context) error {
		if len(in.Messages) == 0 {
			return nil
		}
		_, err := s.storeMessages(ctx, tenant, in)
		in.Messages, in.Branch, size = nil, nil, 0
		return err
	}
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return err
		}
		if size += len(m.Content); len(in.Messages) == historyRows || size > historyBytes {
			if err := store(core.WithoutKeyedWork(ctx)); err != nil {
				return err
			}
			size = len(m.Content)
		}
		m.TokenCount = s.countTokens(m)
		in.Messages = append(in.Messages, m)
	}
	return store(ctx) // the last step is the result of a request with a key
}

// checkHistory returns a message of a history as it is stored.
func (s *Service) checkHistory(m core.Message) (core.Message, error) {
	m, faults := s.Limits.checkMessage(m)
	if err := faults.Err(); err != nil {
		return m, err
	}
	if size := len(m.Content); size > s.Limits.maxContent(m.Role) {
		return m, core.Errorf(core.ErrTooLarge, "a message of the history has %d bytes, at most %d are allowed", size, s.Limits.maxContent(m.Role))
	}
	return m, nil
}
