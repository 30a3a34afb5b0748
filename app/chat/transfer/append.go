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
	m, err = s.checkHistory(m)
	if err != nil {
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
// transaction stores are in memory. It returns the seq of the last one. If it fails, the messages before
// are stored, and they are the end of the current path. Errors as of Append.
func (s *Service) AppendHistory(ctx context.Context, tenant core.Tenant, in core.AppendMessages, history iter.Seq[core.Message]) (last int64, err error) {
	more, size := int64(0), 0
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return 0, err
		}
		more += m.StoredBytes()
	}
	if err := s.Stored.Admit(ctx, tenant, more); err != nil {
		return 0, err
	}
	_, repeated, err := core.CommittedResult(ctx)
	if err != nil {
		return 0, err
	}
	store := func(ctx context.Context) error {
		if _, keyed := core.KeyedWorkFrom(ctx); len(in.Messages) == 0 || repeated && !keyed {
			return nil
		}
		stored, err := s.storeMessages(ctx, tenant, in)
		in.Branch, last = nil, stored.LastSeq
		return err
	}
	for m := range history {
		m, err := s.checkHistory(m)
		if err != nil {
			return 0, err
		}
		if size += len(m.Content); len(in.Messages) == historyRows || size > historyBytes {
			if err := store(core.WithoutKeyedWork(ctx)); err != nil {
				return 0, err
			}
			in.Messages = nil
			size = len(m.Content)
		}
		m.TokenCount = s.countTokens(m)
		in.Messages = append(in.Messages, m)
	}
	err = store(ctx) // the last step is the result of a request with a key
	return last, err
}

// checkHistory returns a message as it is stored.
func (s *Service) checkHistory(m core.Message) (core.Message, error) {
	m, faults := s.Limits.checkMessage(m)
	return m, faults.Err()
}
