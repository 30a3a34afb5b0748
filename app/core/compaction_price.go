package core

// CompactionPrice says what a compaction of the next prompt would cost now, and what it saves:
// in the model's tokens, with a summary of maximum size.
type CompactionPrice struct {
	Now           int             `json:"tokens_now"`            // of the next prompt as it is
	After         int             `json:"tokens_after"`          // of it after the compaction, and so of every later turn
	CacheLost     int             `json:"cache_lost"`            // max of the present prompt that a cache of the provider holds and the new prompt does not have
	SummaryInput  int             `json:"summary_input_tokens"`  // of the summary model; 0 = no model writes it
	SummaryOutput int             `json:"summary_output_tokens"` // max
	SummaryModel  string          `json:"summary_model,omitempty"`
	SummaryCost   *int64          `json:"summary_cost_micro_usd,omitempty"` // millionths of a US dollar; nil = the price is not known
	Turns         *int            `json:"turns,omitempty"`                  // after which it has saved what it costs; nil = never: see Reason
	CountedIn     CountedIn       `json:"counted_in"`                       // what Turns compares
	Reason        CompactionFault `json:"reason,omitempty"`                 // why it does not pay off; empty = it does
}

// CountedIn is what the costs of a compaction are compared in.
type CountedIn string

// Tokens are compared where a price is missing, or nothing costs anything.
const (
	CountedInDollars CountedIn = "dollars"
	CountedInTokens  CountedIn = "tokens"
)

// CompactionFault is why a compaction does not pay off.
type CompactionFault string

// The reasons.
const (
	CompactionNothingToDo CompactionFault = "nothing_to_summarize"
	CompactionNotSmaller  CompactionFault = "not_smaller"  // the summary would be as large as what it replaces
	CompactionDoesNotFit  CompactionFault = "does_not_fit" // no summary makes the prompt fit
)
