package contextwindow

import (
	"math"

	"bobbin/app/core"
)

// firedTriggers says which triggers are crossed.
type firedTriggers struct {
	of   map[string]bool // the policy's, by name
	hard bool            // the prompt does not fit
	loop string          // the limit that the tool loop exceeds; empty = none
}

// anyFired reports whether the prompt or the history is too large.
func (f firedTriggers) anyFired() bool { return f.byTokens() || f.bySince() }

// bySince reports whether there is too much since the cursor.
func (f firedTriggers) bySince() bool {
	return f.of[triggerMessages] || f.of[triggerTokens] || f.of[triggerUnsummarized]
}

// byTokens reports whether the prompt must be brought to the landing point.
func (f firedTriggers) byTokens() bool { return f.of[triggerShare] || f.hard }

// triggerName returns what started a compaction.
func (f firedTriggers) triggerName(force bool) string {
	switch {
	case force:
		return "manual"
	case f.of[triggerShare]:
		return triggerShare
	case f.hard:
		return "overflow"
	case f.of[triggerUnsummarized]:
		return triggerUnsummarized
	case f.of[triggerMessages]:
		return triggerMessages
	default:
		return triggerTokens
	}
}

// resetShare is the part of the trigger that must be new material before a plan that could
// not land triggers again (invariant 6).
const resetShare = 0.25

// trigger is a limit of the history or the prompt, and how near it is.
type trigger struct {
	core.TriggerStatus
	above    bool // fires above its threshold, not at it
	messages bool // counts messages, not tokens
	prepare  int  // the value from which a summary is prepared for it
	missing  int  // messages until it may fire
}

// firesAfter reports whether the trigger fires after that many more messages and tokens.
func (t trigger) firesAfter(messages, tokens int) bool {
	value := t.Value + tokens
	if t.messages {
		value = t.Value + messages
	}
	return messages >= t.missing && (value > t.Threshold || value == t.Threshold && !t.above)
}

// isNear reports whether a summary should be prepared for the trigger.
func (t trigger) isNear() bool { return t.missing == 0 && t.Value >= t.prepare }

// triggersAt returns the policy's triggers at a size of the prompt, with so many messages and tokens since the cursor.
func (p *planner) triggersAt(size, count, since int) []trigger {
	policy := p.in.Policy
	missing := max(policy.NeverBelow-count, 0)
	if !policy.AutoSummarize {
		missing = math.MaxInt
	}
	var list []trigger
	add := func(name string, value, threshold int, t trigger) {
		if threshold <= 0 {
			return
		}
		if !t.above {
			t.prepare = int(math.Ceil(nearShare * float64(threshold)))
		}
		t.TriggerStatus = core.TriggerStatus{Name: name, Value: value, Threshold: threshold}
		t.Fires = t.firesAfter(0, 0)
		list = append(list, t)
	}
	if p.budget.HasShare {
		// Prepared from max(0.85 · trigger, landing + ¼ trigger) on, and as much higher as the trigger
		// is after a compaction that could not land.
		t, threshold := p.budget.Trigger, p.shareThreshold()
		point := max(shareOf(nearShare, t), p.budget.Landing+shareOf(resetShare, t))
		add(triggerShare, size, threshold, trigger{above: true, prepare: min(threshold-t+point, threshold) + 1})
	}
	add(triggerMessages, count, policy.messageThreshold(), trigger{messages: true, missing: missing})
	add(triggerTokens, since, policy.MaxTokens, trigger{missing: missing})
	add(triggerUnsummarized, count, policy.MaxUnsummarized, trigger{messages: true})
	return list
}

// The triggers of a policy.
const (
	triggerShare        = "share"        // too many tokens in the prompt
	triggerMessages     = "messages"     // too many messages since the cursor
	triggerTokens       = "tokens"       // too many tokens since the cursor
	triggerUnsummarized = "unsummarized" // too many unsummarized messages, whatever else is set
)

// selectTriggers returns the triggers of the list that satisfy is.
func selectTriggers(list []trigger, is func(trigger) bool) firedTriggers {
	f := firedTriggers{of: map[string]bool{}}
	for _, t := range list {
		f.of[t.Name] = is(t)
	}
	return f
}

// messageThreshold returns at how many messages since the cursor the policy summarizes; 0 =
// never. N is "at least", the sliding window is "more than".
func (p Policy) messageThreshold() int {
	switch {
	case p.MaxMessages > 0 && p.WindowMessages > 0:
		return min(p.MaxMessages, p.WindowMessages+1)
	case p.WindowMessages > 0:
		return p.WindowMessages + 1
	default:
		return p.MaxMessages
	}
}

// shareThreshold returns the size above which the share trigger fires: the trigger, or where
// the last compaction landed plus a quarter of the trigger if that is more.
func (p *planner) shareThreshold() int {
	t := p.budget.Trigger
	if l := p.state.Landed; l != nil && l.Window == p.budget.Window {
		t = max(t, l.Tokens+shareOf(resetShare, p.budget.Trigger))
	}
	return min(t, p.limit)
}

// fitLimit returns the size above which the oldest messages give way: the maximum of a prompt,
// or less where no share trigger keeps room for recalled passages.
func (p *planner) fitLimit() int {
	if p.budget.Recall > 0 && !p.budget.HasShare {
		return p.shareThreshold()
	}
	return p.limit
}

func (p *planner) addStatus(s core.TriggerStatus) {
	s.Percent = s.Value * 100 / s.Threshold // which is not 0
	p.decision.Triggers = append(p.decision.Triggers, s)
}

// recordLanding records where a compaction landed.
func (p *planner) recordLanding() {
	p.decision.Compacted, p.state.Warned = true, false
	p.cleanState()
	p.dropThoughts()
	p.state.Landed = p.landing()
	if p.total > p.budget.Landing && p.in.Once == "" {
		p.addReason("landed at %d tokens, above the landing point of %d: what is left cannot be summarized", p.total, p.budget.Landing)
	}
}

// landing returns where the prompt is now.
func (p *planner) landing() *Landing {
	seq := p.in.Summary.ThroughSeq
	if n := len(p.slots); n > 0 {
		seq = p.slots[n-1].Seq
	}
	return &Landing{Tokens: p.total, Seq: seq, Window: p.budget.Window}
}

// cleanState removes what the cursor has passed from the state.
func (p *planner) cleanState() {
	s, cursor := p.state, p.in.Summary.ThroughSeq
	if s.MaskedThrough <= cursor {
		s.MaskedThrough = 0
	}
	s.LeftOut, s.Loops = withoutRange(s.LeftOut, SeqRange{0, cursor}), s.loopsBehind(cursor)
	if s.Cut != nil && s.Cut.Seq <= cursor {
		s.Cut = nil
	}
	s.ThoughtsDropped = withoutRange(s.ThoughtsDropped, SeqRange{0, cursor})
	var short map[core.MessageID]int
	for it := range joined(p.in.History, p.in.Run) {
		if n, ok := s.Shortened[it.ID]; ok && !inRanges(s.LeftOut, it.Seq) && findLoop(p.loops, it) == nil {
			if short == nil {
				short = map[core.MessageID]int{}
			}
			short[it.ID] = n
		}
	}
	s.Shortened = short
	p.state = s
}

// roomLeft returns the room behind a prompt for which nothing was changed; none where an older version
// of the summary may be enough. A summary for the triggers that are near is ready, or to be prepared.
func (p *planner) roomLeft(ready bool) Room {
	if p.madeForSmaller(p.in.Summary.MadeFor) {
		return Room{}
	}
	room := Room{Messages: math.MaxInt, Tokens: max(p.fitLimit()-p.total, 0)}
	for _, t := range p.limits {
		most := t.Threshold
		if p.in.Policy.Timing == TimingBackground && t.prepare > 0 && !(ready && t.isNear()) {
			most = min(most, t.prepare)
		}
		left := &room.Tokens
		if t.messages {
			left = &room.Messages
		}
		*left = min(*left, max(most-1-t.Value, 0))
	}
	return room
}

// estimateTurnsLeft estimates how many more average turns of the tail fit.
func (p *planner) estimateTurnsLeft() {
	turns, size := 0, 0
	for _, s := range p.history {
		if s.Role == core.RoleUser {
			turns++
		}
		size += s.Size
	}
	tokens, messages := 1, 1 // of an average turn
	if turns > 0 {
		tokens, messages = max(size/turns, 1), max(len(p.history)/turns, 1)
	}
	const exchange = 2 // messages of a turn without tools
	p.decision.WillTrigger = p.decision.Summarize != nil || p.decision.Activate != nil
	left := max(p.fitLimit()-p.total, 0) / tokens
	for _, t := range p.limits {
		p.decision.WillTrigger = p.decision.WillTrigger || t.firesAfter(exchange, tokens)
		room, each := t.Threshold-t.Value, tokens
		if t.messages {
			each = messages
		}
		if !t.above {
			room--
		}
		left = min(left, max(room/each, (t.missing-1)/messages, 0))
	}
	if p.decision.WillTrigger {
		left = 0
	}
	if turns > 0 {
		p.decision.TurnsLeft = &left
	}
}
