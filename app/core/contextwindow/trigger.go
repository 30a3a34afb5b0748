package contextwindow

import (
	"slices"

	"bobbin/app/core"
)

// fired says which triggers are over.
type fired struct {
	share        bool   // too many tokens in the prompt
	messages     bool   // too many messages since the cursor
	tokens       bool   // too many tokens since the cursor
	unsummarized bool   // too many unsummarized messages, whatever else is set
	hard         bool   // the prompt does not fit
	loop         string // the tool loop is too long, by its own limits: which; empty = it is not
}

// any reports whether the prompt as a whole or the history is too large.
func (f fired) any() bool { return f.hard || f.share || f.bySince() }

// bySince reports whether there is too much since the cursor.
func (f fired) bySince() bool { return f.messages || f.tokens || f.unsummarized }

// byTokens reports whether the prompt must be brought to the landing point.
func (f fired) byTokens() bool { return f.share || f.hard }

// name returns what started a compaction.
func (f fired) name(force bool) string {
	switch {
	case force:
		return "manual"
	case f.share:
		return "share"
	case f.hard:
		return "overflow"
	case f.unsummarized:
		return "unsummarized"
	case f.messages:
		return "messages"
	default:
		return "tokens"
	}
}

// resetShare is the part of the trigger that must be new material before a plan
// that could not land triggers again (CONTEXT § 3, invariant 6).
const resetShare = 0.25

// triggers finds out which triggers are over and notes how near each one is.
func (p *planner) triggers() fired {
	pol := p.in.Policy
	f := fired{hard: p.total > p.limit}
	count, tokens := len(p.in.History), p.sinceCursor()
	allowed := pol.AutoSummarize && count >= pol.NeverBelow
	if p.b.HasShare {
		threshold := p.shareThreshold()
		f.share = p.total > threshold
		p.status("share", p.total, threshold, f.share)
	}
	if n := pol.messageThreshold(); n > 0 {
		f.messages = allowed && count >= n
		p.status("messages", count, n, f.messages)
	}
	if pol.MaxTokens > 0 {
		f.tokens = allowed && tokens >= pol.MaxTokens
		p.status("tokens", tokens, pol.MaxTokens, f.tokens)
	}
	if pol.MaxUnsummarized > 0 {
		f.unsummarized = count >= pol.MaxUnsummarized
		p.status("unsummarized", count, pol.MaxUnsummarized, f.unsummarized)
	}
	f.loop = p.loopTrigger()
	return f
}

// messageThreshold returns at how many messages since the cursor the policy
// summarizes; 0 = at none. N is "at least", the sliding window is "more than".
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

// shareThreshold returns over which size the share trigger fires: the trigger,
// or where the last compaction landed plus a quarter of it if that is more.
func (p *planner) shareThreshold() int {
	t := p.b.Trigger
	if l := p.state.Landed; l != nil && l.Window == p.b.Window {
		t = max(t, l.Tokens+share(resetShare, p.b.Trigger))
	}
	return min(t, p.limit)
}

func (p *planner) status(name string, value, threshold int, fires bool) {
	percent := 100
	if threshold > 0 {
		percent = value * 100 / threshold
	}
	p.d.Triggers = append(p.d.Triggers, core.TriggerStatus{
		Name: name, Value: value, Threshold: threshold, Percent: percent, Fires: fires,
	})
}

// settle records where a compaction landed.
func (p *planner) settle() {
	p.d.Compacted, p.state.Warned = true, false
	seq := p.in.Summary.ThroughSeq
	p.clean()
	for _, slots := range [][]Slot{p.history, p.run} {
		if n := len(slots); n > 0 {
			seq = slots[n-1].Seq
		}
	}
	p.state.Landed = &Landing{Tokens: p.total, Seq: seq, Window: p.b.Window}
	if p.total > p.b.Landing {
		p.reason("landed at %d tokens, above the landing point of %d: what is left cannot be summarized", p.total, p.b.Landing)
	}
}

// clean takes out of the state what is behind the cursor.
func (p *planner) clean() {
	p.state = p.state.behind(p.in.Summary.ThroughSeq, append(slices.Clone(p.in.History), p.in.Run...))
}
