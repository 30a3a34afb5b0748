package core

import "time"

// ContextTurns says where the messages of a session are in its next prompt, and how large the
// prompts of its newest turns were.
type ContextTurns struct {
	Ranges        []PlacedRange `json:"ranges"`                   // in the order of the log
	RangesOmitted int           `json:"ranges_omitted,omitempty"` // the oldest, beyond MaxRanges
	Turns         []ContextTurn `json:"turns"`                    // oldest first; an imported turn has none
	TurnsOmitted  int           `json:"turns_omitted"`            // runs before the first of Turns
}

// Limits of a ContextTurns.
const (
	MaxRanges = 1000
	MaxTurns  = 240
)

// PlacedRange is neighbors on the current path with the same place in the next prompt.
type PlacedRange struct {
	FromSeq        int64     `json:"from_seq"`
	ThroughSeq     int64     `json:"through_seq"`
	Place          Placement `json:"place"`
	SummaryVersion int       `json:"summary_version,omitempty"` // that covers them, or notes; 0 = none
}

// ContextTurn is the last prompt of a run. Tokens are estimates of the model's own.
type ContextTurn struct {
	RunID          RunID          `json:"run_id"`
	Seq            int64          `json:"seq,omitempty"` // of the run's question; 0 = it is gone
	At             time.Time      `json:"at"`            // when the question was accepted
	Used           int            `json:"used"`
	Usable         int            `json:"usable"`
	Trigger        int            `json:"trigger"` // over it the oldest messages are summarized; 0 = no such limit
	Sections       map[string]int `json:"sections"`
	SummaryVersion int            `json:"summary_version"` // 0 = none
	Summarized     bool           `json:"summarized"`      // it is the first turn with this version
	Masked         bool           `json:"masked"`          // old tool results are replaced by markers
	Without        int            `json:"without"`         // Used with the covered messages in place of the summary
}

// RunReport is the context report of a run.
type RunReport struct {
	RunID  RunID
	Seq    int64     // of its question; 0 = it is gone
	At     time.Time // when it was accepted
	Report ContextReport
}
