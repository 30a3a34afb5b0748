package contextwindow

import (
	"encoding/json"
	"fmt"
	"slices"

	"bobbin/app/core"
)

// PromptState is what compactions have decided so far besides the summary. It is stored with
// the session under the same compare-and-set as the summary version, and only compactions
// change it: between two of them prompts only grow at their end (invariant 7). Its slices
// and maps are never changed in place.
type PromptState struct {
	MaskedThrough int64                  `json:"masked_through,omitempty"` // tool results up to this seq are masked
	LeftOut       []SeqRange             `json:"left_out,omitempty"`       // messages that are not sent
	Shortened     map[core.MessageID]int `json:"shortened,omitempty"`      // to how many cl100k_base tokens
	SummaryCut    int                    `json:"summary_cut,omitempty"`    // max cl100k_base tokens of the summary in the prompt; 0 = whole
	StandingOut   bool                   `json:"standing_out,omitempty"`   // the standing instructions have no room
	Landed        *Landing               `json:"landed,omitempty"`         // where the last compaction landed
	Cut           *Landing               `json:"cut,omitempty"`            // of the last prompt that did not wait for a summary: Seq is the newest message left out
	Warned        bool                   `json:"warned,omitempty"`         // a warning near the limit was sent since then
	ReportedID    core.MessageID         `json:"told,omitempty"`           // the message whose shortening was reported
	Loops         []LoopRange            `json:"loops,omitempty"`          // where notes replace the older part of a run's tool loop
	// ThoughtsDropped are messages whose thoughts are not sent: the prompt before them has changed
	// since, or the provider left them out.
	ThoughtsDropped []SeqRange `json:"thoughts_dropped,omitempty"`
}

// SeqRange is a range of seq, both ends included.
type SeqRange struct {
	From    int64 `json:"from"`
	Through int64 `json:"through"`
}

// Landing is the result of a compaction.
type Landing struct {
	Tokens int   `json:"tokens"` // of the model
	Seq    int64 `json:"seq"`    // newest message in that prompt
	Window int   `json:"window"` // of the model it was planned for
}

// DecodeState reads a stored PromptState; an empty one is the zero state.
func DecodeState(raw []byte) (PromptState, error) {
	var s PromptState
	if len(raw) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return PromptState{}, fmt.Errorf("prompt state: %w", err)
	}
	return s, nil
}

// Encode returns the state as it is stored.
func (s PromptState) Encode() []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		panic("contextwindow: prompt state: " + err.Error()) // plain values only
	}
	return raw
}

// withRange returns the ranges with one more; touching ranges become one.
func withRange(ranges []SeqRange, more SeqRange) []SeqRange {
	ranges = append(slices.Clone(ranges), more)
	slices.SortFunc(ranges, func(a, b SeqRange) int { return int(a.From - b.From) })
	merged := ranges[:1]
	for _, r := range ranges[1:] {
		last := &merged[len(merged)-1]
		if r.From <= last.Through+1 {
			last.Through = max(last.Through, r.Through)
			continue
		}
		merged = append(merged, r)
	}
	return merged
}

// withoutRange returns what of the ranges is not in the other one.
func withoutRange(ranges []SeqRange, other SeqRange) (out []SeqRange) {
	for _, r := range ranges {
		for _, rest := range []SeqRange{{r.From, min(r.Through, other.From-1)}, {max(r.From, other.Through+1), r.Through}} {
			if rest.From <= rest.Through {
				out = append(out, rest)
			}
		}
	}
	return out
}

// inRanges reports whether one of the ranges contains the seq.
func inRanges(ranges []SeqRange, seq int64) bool {
	return slices.ContainsFunc(ranges, func(r SeqRange) bool { return r.From <= seq && seq <= r.Through })
}

// Resumed returns the state of a conversation that went back to an earlier summary, or to
// none: nothing is masked, shortened or left out. Notes on tool loops are summaries of their
// own and stay. As after a compaction, the share trigger waits for new material (invariant
// 6): otherwise the restored summary would be replaced immediately.
func Resumed(in Input) PromptState {
	in.State = PromptState{Loops: in.State.Loops}
	p := newPlanner(in)
	p.placeMessages()
	in.State.Landed = p.landing()
	return in.State
}
