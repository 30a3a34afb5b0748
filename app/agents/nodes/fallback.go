package nodes

import (
	"context"
	"errors"
	"fmt"

	"bobbin/app/agents/state"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
)

// tries is how often, and with what, one call was tried.
type tries struct {
	turn   compaction.Turn
	spare  []llm.Model      // fallbacks that were not tried yet
	books  []core.ModelCall // calls that are not booked yet
	failed *llm.Error       // why there was a fallback; nil = there was none
	last   call             // that was made; its decision is empty before the first

	overflows, restarts int            // of the present model
	next                core.MessageID // takes the place of a message that was taken back; empty = none was
}

// replaceable reports whether another model may do what this one could not: the
// failure is the provider's or the account's, not the request's.
func replaceable(e *llm.Error) bool {
	switch e.Kind {
	case llm.KindOverloaded, llm.KindRateLimit, llm.KindTimeout, llm.KindNetwork, llm.KindTruncated, llm.KindAuth, llm.KindNotFound:
		return true
	default:
		return false
	}
}

// tooSmall returns why there was a fallback if its window cannot hold what cannot
// be shrunk: that is no fault of the conversation, the next one may hold it.
func (t *tries) tooSmall(err error) *llm.Error {
	if errors.Is(err, core.ErrContextFloor) {
		return t.failed
	}
	return nil
}

// fallBack goes on with the next fallback, for this call only. What has failed is
// booked and told at once; the prompt is planned anew for the other window.
func (n *Caller) fallBack(ctx context.Context, s *state.AgentState, t *tries, e *llm.Error) error {
	from, next := s.Profile.Model.Info().Name, t.spare[0]
	to := next.Info().Name
	w := write(*s)
	w.ModelCalls, w.Usage = t.books, usage(t.books)
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, core.ContextData{
		Trigger: "fallback", Reason: fmt.Sprintf("The model %s cannot answer (%s); %s takes its place for this answer.", from, e.Kind, to),
	})}
	if _, err := n.journal.Append(ctx, w); err != nil {
		return fmt.Errorf("fall back to %s: %w", to, err)
	}
	n.logger.WarnContext(ctx, "model replaced by its fallback", "run_id", s.Run.ID, "model", from, "kind", e.Kind, "fallback", to)
	s.Usage = s.Usage.Add(w.Usage)
	s.Profile.Model, t.turn.Profile.Model = next, next
	t.turn.Cap, t.turn.Window = 0, 0 // were the other model's
	t.spare, t.books, t.failed = t.spare[1:], nil, e
	t.overflows, t.restarts = 0, 0
	return nil
}
