package core

import "time"

// ContextTurns says where the messages of a session are in its next prompt, and how large the
// prompts of its newest turns were.
type ContextTurns struct {
	Ranges        []PlacedRange `json:"ranges"` // in the order of the log
	RangesOmitted int           `json:"ranges_omitted,omitempty" doc:"The oldest ones."`
	Turns         []ContextTurn `json:"turns"` // oldest first; an imported turn has none
	TurnsOmitted  int           `json:"turns_omitted" doc:"Runs before the first of the turns."`
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
	Place          Placement `json:"place" enum:"covered,verbatim,masked,shortened,left_out,excluded"`
	SummaryVersion int       `json:"summary_version,omitempty" doc:"That covers them, of the conversation or of a run (notes)."`
}

// ContextTurn is the last prompt of a run. Tokens are estimates of the model's own.
type ContextTurn struct {
	RunID          RunID          `json:"run_id"`
	Seq            int64          `json:"seq,omitempty" doc:"Of the question."`
	At             time.Time      `json:"at"` // when the question was accepted
	Used           int            `json:"used" doc:"Tokens of the last prompt, in the model's own, as all that follow."`
	Usable         int            `json:"usable" doc:"No prompt is larger."`
	Trigger        int            `json:"trigger" doc:"Over it the oldest messages are summarized; 0 = no such limit."`
	Sections       map[string]int `json:"sections" doc:"Tokens by the name of the section, as in the context report."`
	SummaryVersion int            `json:"summary_version" doc:"0 = none."`
	Summarized     bool           `json:"summarized" doc:"It is the first turn with this version."`
	Masked         bool           `json:"masked" doc:"Markers replaced old tool results."`
	Without        int            `json:"without" doc:"What the prompt would be with the covered messages in place of their summary."`
}

// RunReport is the context report of a run.
type RunReport struct {
	RunID  RunID         `gorm:"column:id"`
	Seq    int64         // of its question; 0 = it is gone
	At     time.Time     `gorm:"column:created_at"` // when it was accepted
	Report ContextReport `gorm:"column:context;serializer:json"`
}
