package contextwindow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"bobbin/app/core"
)

// PromptState is what compactions have decided so far beyond the summary. It is
// stored with the session under the same compare-and-set as the summary version
// and changed only by a compaction: between two compactions prompts only grow at
// their end (CONTEXT § 3, invariant 7). Its slices and maps are never changed in
// place.
type PromptState struct {
	MaskedThrough int64                  `json:"masked_through,omitempty"` // tool results up to this seq are masked
	LeftOut       []SeqRange             `json:"left_out,omitempty"`       // messages that are not sent
	Shortened     map[core.MessageID]int `json:"shortened,omitempty"`      // to how many cl100k_base tokens
	SummaryCut    int                    `json:"summary_cut,omitempty"`    // the summary is shown with so many cl100k_base tokens; 0 = whole
	Landed        *Landing               `json:"landed,omitempty"`         // where the last compaction brought the prompt to
	Warned        bool                   `json:"warned,omitempty"`         // since then it was said that the prompt is near the limit
	Loops         []LoopRange            `json:"loops,omitempty"`          // where notes stand for the older part of a run's tool loop
}

// SeqRange is a range of seq, both ends included.
type SeqRange struct {
	From    int64 `json:"from"`
	Through int64 `json:"through"`
}

// Landing is where a compaction brought a prompt to.
type Landing struct {
	Tokens int   `json:"tokens"` // of the model
	Seq    int64 `json:"seq"`    // newest message in that prompt
	Window int   `json:"window"` // of the model it was planned for
}

// DecodeState reads a stored PromptState; nothing stored is the zero state.
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

// within returns the state as it holds in a window. What was cut for a smaller
// window is not cut in a larger one: after a switch to a larger model the whole
// of what is not summarized is sent again (W12). Notes are summaries and stay.
func (s PromptState) within(window int) PromptState {
	if s.Landed != nil && s.Landed.Window < window {
		return PromptState{Loops: s.Loops}
	}
	return s
}

// leftOut reports whether the message is not sent.
func (s PromptState) leftOut(seq int64) bool {
	return slices.ContainsFunc(s.LeftOut, func(r SeqRange) bool { return r.From <= seq && seq <= r.Through })
}

// withLeftOut returns the state with one more range; touching ranges become one.
func (s PromptState) withLeftOut(from, through int64) PromptState {
	ranges := append(slices.Clone(s.LeftOut), SeqRange{from, through})
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
	s.LeftOut = merged
	return s
}

// withShortened returns the state with these messages shortened to so many tokens.
func (s PromptState) withShortened(more map[core.MessageID]int) PromptState {
	short := map[core.MessageID]int{}
	maps.Copy(short, s.Shortened)
	maps.Copy(short, more)
	s.Shortened = short
	return s
}

// whole returns the state with the message not shortened.
func (s PromptState) whole(id core.MessageID) PromptState {
	s.Shortened = maps.Clone(s.Shortened)
	delete(s.Shortened, id)
	return s
}

// behind returns the state without what the cursor has passed or what is left out
// anyway; items are those in front of the cursor.
func (s PromptState) behind(cursor int64, items []Item) PromptState {
	if s.MaskedThrough <= cursor {
		s.MaskedThrough = 0
	}
	var ranges []SeqRange
	for _, r := range s.LeftOut {
		if r.Through > cursor {
			ranges = append(ranges, SeqRange{max(r.From, cursor+1), r.Through})
		}
	}
	s.LeftOut, s.Loops = ranges, s.loopsBehind(cursor)
	var short map[core.MessageID]int
	for _, it := range items {
		if n, ok := s.Shortened[it.ID]; ok && !s.leftOut(it.Seq) && s.loop(it) == nil {
			if short == nil {
				short = map[core.MessageID]int{}
			}
			short[it.ID] = n
		}
	}
	s.Shortened = short
	return s
}
