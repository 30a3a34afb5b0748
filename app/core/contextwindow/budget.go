package contextwindow

import "math"

// Limits are what a model can take, in its own tokens.
type Limits struct {
	Window    int // prompt and answer together; 0 = not known: UnknownWindow
	MaxOutput int // most of an answer; 0 = not known
}

// UnknownWindow is the window of a model of which none is known: small enough for
// almost every model in use (W9).
const UnknownWindow = 8_192

// Budget is the arithmetic of CONTEXT § 1 for one policy and one model, in the
// model's tokens.
type Budget struct {
	Window       int
	Reserve      int // kept for the answer
	Usable       int // window − reserve: no prompt is ever larger
	Trigger      int // over it a compaction starts: the share trigger, or usable where there is none
	HasShare     bool
	Landing      int // where a compaction brings the prompt to
	SummaryLimit int // most of a summary
}

// Sizes of summaries when a policy sets none: 2 % of the window, within bounds.
const (
	summaryWindowShare = 0.02
	minSummaryLimit    = 800
	maxSummaryLimit    = 8_000
	// summaryLandingShare bounds any summary by the landing point, so that on a
	// small window the summary leaves room for the messages it introduces.
	summaryLandingShare = 0.4
)

// Budget returns the arithmetic for a model. Fixed are the tokens of the system
// prompt and the tool definitions, on which a summary's share depends (B3).
func (p Policy) Budget(m Limits, fixed int) Budget {
	if m.Window <= 0 {
		m.Window = UnknownWindow
	}
	b := Budget{Window: m.Window}
	b.Reserve = min(p.ResponseReserve, m.Window/4)
	if m.MaxOutput > 0 {
		b.Reserve = min(b.Reserve, m.MaxOutput)
	}
	b.Usable = m.Window - b.Reserve
	base := m.Window
	if p.MaxContextTokens > 0 {
		base = min(p.MaxContextTokens, b.Usable)
	}
	b.Trigger = b.Usable
	if p.AutoSummarize && p.UsageThreshold > 0 {
		b.HasShare = true
		b.Trigger = min(share(p.UsageThreshold, base), b.Usable)
	}
	b.Landing = share(p.LandAt, b.Trigger)
	if p.TargetContextTokens > 0 {
		b.Landing = min(b.Landing, p.TargetContextTokens)
	}
	b.SummaryLimit = p.summaryLimit(m.Window, b.Usable-fixed, b.Landing)
	return b
}

// summaryLimit returns the most tokens of a summary.
func (p Policy) summaryLimit(window, available, landing int) int {
	limit := summarySize(window)
	switch {
	case p.MaxSummaryTokens > 0:
		limit = p.MaxSummaryTokens
	case p.MaxSummaryShare > 0:
		limit = share(p.MaxSummaryShare, max(available, 0))
	}
	if p.MaxSummaryTokens > 0 && p.MaxSummaryShare > 0 {
		limit = min(limit, share(p.MaxSummaryShare, max(available, 0)))
	}
	return max(min(limit, share(summaryLandingShare, landing)), 1)
}

// summarySize returns the most tokens of a summary where nothing else bounds it.
func summarySize(window int) int {
	return min(max(share(summaryWindowShare, window), minSummaryLimit), maxSummaryLimit)
}

// share returns the part of n, rounded towards less.
func share(part float64, n int) int { return int(math.Floor(part * float64(n))) }

// PinnedFloor returns what cannot be shrunk of a prompt in which these messages are
// pinned, and the most that it may be, so that a compaction can land: both in the
// model's tokens.
func PinnedFloor(in Input, pinned []Item) (floor, room int) {
	r := ruler{in.Factor}
	floor = r.of(in.System+ListOverhead) + r.of(in.Tools) + r.of(pinnedWrap)
	for _, it := range pinned {
		floor += r.of(it.Tokens + pinnedLine)
	}
	return floor, in.Policy.Budget(in.Model, r.of(in.System+ListOverhead)+r.of(in.Tools)).Landing
}

// ruler turns cl100k_base tokens into the model's.
type ruler struct{ factor float64 }

// of returns the model's tokens, rounded up.
func (r ruler) of(tokens int) int { return int(math.Ceil(float64(tokens) * r.factor)) }

// back returns the most cl100k_base tokens that are at most so many of the model's.
func (r ruler) back(tokens int) int {
	n := int(math.Floor(float64(tokens) / r.factor))
	if r.of(n) > tokens { // 70·1.1 is a little more than 77
		n--
	}
	return n
}
