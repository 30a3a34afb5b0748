package compaction

import (
	"math"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// turnsLeft returns how many turns as those of the tail fit before one of the
// triggers fires, or, without any, before the prompt is full; nil while there is no
// turn to measure by.
func turnsLeft(in contextwindow.Input, d contextwindow.Decision) *int {
	turns := 0
	for _, s := range d.History {
		if s.Role == core.RoleUser {
			turns++
		}
	}
	tokens := tokensPerTurn(d)
	if turns == 0 || tokens == 0 {
		return nil
	}
	if d.Summarize != nil || willTrigger(in, d) {
		return new(int)
	}
	messages := max(len(d.History)/turns, 1)
	left := max(d.Budget.Usable-d.Total, 0) / tokens
	for _, s := range d.Triggers {
		n := s.Threshold - s.Value
		switch s.Name {
		case "iterations", "loop_tokens": // of the run in progress
			continue
		case "share": // fires over it
			n /= tokens
		case "unsummarized":
			n = (n - 1) / messages
		case "messages":
			n = max((n-1)/messages, untilAllowed(in, messages))
		case "tokens":
			n = max((n-1)/tokens, untilAllowed(in, messages))
		}
		left = min(left, max(n, 0))
	}
	return &left
}

// untilAllowed returns how many turns fit before the policy's triggers may fire at
// all (B5).
func untilAllowed(in contextwindow.Input, perTurn int) int {
	if !in.Policy.AutoSummarize {
		return math.MaxInt
	}
	return max(in.Policy.NeverBelow-1-len(in.History), 0) / perTurn
}
