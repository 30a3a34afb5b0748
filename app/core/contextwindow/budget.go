package contextwindow

import (
	"cmp"
	"math"

	"bobbin/app/core"
)

// Limits are what a model can take, in its own tokens.
type Limits struct {
	Window    int // prompt and answer together; 0 = unknown: UnknownWindow
	MaxOutput int // max of an answer; 0 = unknown
}

// UnknownWindow is the window of a model that reports none: small enough for almost every one in use.
const UnknownWindow = 8_192

// Budget is the token arithmetic for one policy and one model, in the model's tokens.
type Budget struct {
	Window       int
	Reserve      int // kept for the answer
	Usable       int // window − reserve: no prompt is ever larger
	Trigger      int // a larger prompt is compacted: the share trigger, or usable without room for recalled passages where there is none
	HasShare     bool
	Landing      int // size to which a compaction brings the prompt
	SummaryLimit int // max of a summary
	Recall       int // max of recalled passages; 0 = none are quoted
}

// Summary sizes where a policy sets none: 2 % of the window, within bounds.
const (
	summaryWindowShare = 0.02
	minSummaryLimit    = 800
	maxSummaryLimit    = 8_000
	// summaryLandingShare bounds every summary by the landing point, so that a summary
	// leaves room for messages on a small window.
	summaryLandingShare = 0.4
)

// Budget returns the budget for a model. Fixed is the tokens of the system prompt and the
// tool definitions, on which a summary's share depends.
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
	if p.Recall == RecallAuto {
		b.Recall = shareOf(p.RecallShare, m.Window)
	}
	b.Trigger = b.Usable - b.Recall // or a prompt that is nearly full would have no room for the passages
	if p.AutoSummarize && p.UsageThreshold > 0 {
		b.HasShare = true
		b.Trigger = min(shareOf(p.UsageThreshold, base), b.Trigger)
	}
	b.Landing = shareOf(p.LandAt, b.Trigger)
	if p.TargetContextTokens > 0 {
		b.Landing = min(b.Landing, p.TargetContextTokens)
	}
	limit := cmp.Or(p.MaxSummaryTokens, summarySize(m.Window))
	if p.MaxSummaryShare > 0 {
		share := shareOf(p.MaxSummaryShare, max(b.Usable-fixed, 0))
		limit = min(cmp.Or(p.MaxSummaryTokens, share), share)
	}
	b.SummaryLimit = max(min(limit, shareOf(summaryLandingShare, b.Landing)), 1)
	return b
}

// summarySize returns the max tokens of a summary where nothing else bounds it.
func summarySize(window int) int {
	return min(max(shareOf(summaryWindowShare, window), minSummaryLimit), maxSummaryLimit)
}

// shareOf returns the part of n, rounded down.
func shareOf(part float64, n int) int { return int(math.Floor(part * float64(n))) }

// PinnedFloor returns what cannot be shrunk in a prompt with these messages pinned, and its
// maximum, so that a compaction can land: both in the model's tokens.
func PinnedFloor(in Input, pinned []Item) (floor, room int) {
	in.Pinned, in.History, in.Run, in.Summary, in.Standing = pinned, nil, nil, core.SummaryVersion{}, nil
	p := newPlanner(in)
	p.placeMessages()
	return p.total, p.budget.Landing
}

// SummaryRoom returns the max cl100k_base tokens of a hand-written summary: what the policy
// allows for this model, or the size of the current one.
func SummaryRoom(in Input) int {
	p := newPlanner(in)
	return max(p.scale.toBase(p.budget.SummaryLimit), in.Summary.Tokens)
}

// tokenScale converts cl100k_base tokens to the model's.
type tokenScale struct{ factor float64 }

// toModel returns the model's tokens, rounded up.
func (r tokenScale) toModel(tokens int) int { return int(math.Ceil(float64(tokens) * r.factor)) }

// toBase returns the most cl100k_base tokens that are at most this many of the model's.
func (r tokenScale) toBase(tokens int) int {
	n := int(math.Floor(float64(tokens) / r.factor))
	if r.toModel(n) > tokens { // 70·1.1 is a little more than 77
		n--
	}
	return n
}
