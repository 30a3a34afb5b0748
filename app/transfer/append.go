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
func (s *Service) Append(ctx context.Context, scope core.Scope, id core.SessionID, m core.Message) (stored core.Message, repeated bool, err error) {
	if size := len(core.CleanText(m.Content)); size > s.limits.content(m.Role) {
		return core.Message{}, false, core.Errorf(core.ErrTooLarge,
			"the message has %d bytes, at most %d are allowed: shorten it or send it in parts", size, s.limits.content(m.Role))
	}
	m.Role, m.Source = cmp.Or(m.Role, core.RoleUser), cmp.Or(m.Source, core.SourceAPI)
	m, faults := s.limits.check(m)
	if err := faults.Err(); err != nil {
		return core.Message{}, false, err
	}
	m.TokenCount = s.counter.Message(m)
	out, err := s.store(ctx, scope, core.AppendMessages{SessionID: id, Messages: []core.Message{m}}, appendTime)
	if err != nil {
		return core.Message{}, false, err
	}
	return out.Messages[0], out.Repeated, nil
}
