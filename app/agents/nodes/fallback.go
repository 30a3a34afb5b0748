package nodes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
)

// attempts is how often, and with what, one call was tried.
type attempts struct {
	turn   compaction.Turn
	spare  []llm.Model      // fallbacks that were not tried yet
	books  []core.ModelCall // calls that are not booked yet
	failed *llm.Error       // why there was a fallback; nil = there was none
	last   call             // that was made; its decision is empty before the first

	overflows, restarts int                // of the present model
	refusedTools        bool               // its provider did not take changes of the tools
	refusedSize         int                // tokens of the prompt and its answer from whose refusal turn.Window is supposed; 0 = it is not
	suspected           *call              // was refused first, for an unclear reason; nil = none was
	refused             []core.RefusedTurn // nil = not asked for
	leavesOut           []string           // what its provider refused, now or earlier in the run, and the next tries leave out
	refusedNative       bool               // the provider did not take back its compaction: the summary's words are sent instead
	next                core.MessageID     // takes the place of a message that was taken back; empty = none was

	warning *core.ContextData // of what was refused now, for when a try without it is answered; nil = there is none
}

// canFallBack reports whether another model may do what this one could not: the
// failure is the provider's or the account's, not the request's.
func canFallBack(e *llm.Error) bool {
	return slices.Contains([]llm.ErrorKind{
		llm.KindOverloaded, llm.KindRateLimit, llm.KindTimeout, llm.KindNetwork, llm.KindTruncated, llm.KindAuth, llm.KindNotFound,
	}, e.Kind)
}

// tooSmall returns the failure that is behind a window that cannot hold what cannot
// be shrunk: why there was a fallback, as the next one may hold it, or the refusal
// that led to a smaller window being supposed. Nil if there is none.
func (t *attempts) tooSmall(err error) *llm.Error {
	switch {
	case !errors.Is(err, core.ErrContextFloor):
		return nil
	case t.suspected != nil:
		return t.suspected.err
	default:
		return t.failed
	}
}

// fallBack goes on with the next fallback, for this call only. What has failed is
// booked and told at once; the prompt is planned anew for the other window.
func (n *LLM) fallBack(ctx context.Context, s *AgentState, t *attempts, e *llm.Error) error {
	from, next := s.Profile.Model.Info().Name, t.spare[0]
	to := next.Info().Name
	w := newWrite(*s)
	w.ModelCalls, w.Usage = t.books, sumUsage(t.books)
	w.Events = []core.Event{core.NewEvent(s.Run.SessionID, s.Run.ID, core.EventContextWarning, core.ContextData{
		Trigger: "fallback", Reason: fmt.Sprintf("The model %s cannot answer (%s); %s takes its place for this answer.", from, e.Kind, to),
	})}
	if _, err := n.Journal.Append(ctx, w); err != nil {
		return fmt.Errorf("fall back to %s: %w", to, err)
	}
	n.Logger.WarnContext(ctx, "model replaced by its fallback", "run_id", s.Run.ID, "model", from, "kind", e.Kind, "fallback", to)
	s.Profile.Model, t.turn.Profile.Model = next, next
	t.turn.Cap, t.turn.Window, t.turn.Trial = 0, 0, false // were the other model's
	t.refusedSize, t.suspected = 0, nil
	t.spare, t.books, t.failed = t.spare[1:], nil, e
	t.overflows, t.restarts, t.refusedTools, t.leavesOut, t.warning = 0, 0, false, nil, nil
	return nil
}
