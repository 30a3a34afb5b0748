package records

import "bobbin/app/core"

// Versions checks that each version in use goes on where the one before ends, that the
// newest of them is the active one, and that the session's summary is that version,
// whole. What is prepared goes further.
func (c *Check) Versions() {
	for i, sum := range c.Summaries {
		if sum.Version != i+1 || sum.Content == "" {
			c.Errorf("summary %d has version %d, and %d bytes", i+1, sum.Version, len(sum.Content))
		}
	}
	used, ready := c.used()
	var through int64
	for i, sum := range used {
		if newest := i == len(used)-1; (sum.State == core.SummaryActive) != newest || sum.ThroughSeq <= through {
			c.Errorf("summary %d is %s, and goes from %d to %d", sum.Version, sum.State, through, sum.ThroughSeq)
		}
		through = sum.ThroughSeq
	}
	s := c.Session
	if ready != nil && ready.ThroughSeq <= s.SummaryThroughSeq {
		c.Errorf("summary %d is prepared up to %d, the one in use goes to %d", ready.Version, ready.ThroughSeq, s.SummaryThroughSeq)
	}
	c.inUse(used)
}

// used are the versions that came into use, and ready is the one that is prepared; nil =
// none is.
func (c *Check) used() (used []core.Summary, ready *core.Summary) {
	for _, sum := range c.Summaries {
		switch {
		case sum.ActivatedAt != nil:
			used = append(used, sum)
		case sum.State == core.SummaryPrepared && ready == nil:
			ready = &sum
		case sum.State != core.SummaryDropped:
			c.Errorf("summary %d was never used and is %s", sum.Version, sum.State)
		}
	}
	return used, ready
}

// inUse checks that the session's summary is the newest that came into use.
func (c *Check) inUse(used []core.Summary) {
	s := c.Session
	if len(used) == 0 {
		if s.SummaryVersion != 0 || s.ConversationSummary != nil || s.SummaryThroughID != nil || s.SummarizedCount != 0 {
			c.Errorf("there is no summary, but the session has version %d", s.SummaryVersion)
		}
		return
	}
	last := used[len(used)-1]
	if s.ConversationSummary == nil || s.SummaryThroughID == nil || s.LastSummarizedAt == nil {
		c.Errorf("there is summary %d, but the session has none", last.Version)
		return
	}
	if s.SummaryVersion != last.Version || s.SummaryCount != len(used) || *s.ConversationSummary != last.Content ||
		*s.SummaryThroughID != last.ThroughID || s.SummaryThroughSeq != last.ThroughSeq || s.SummaryTokens != last.TokenCount {
		c.Errorf("the session has summary %d through %d, the newest version is %d through %d, or their texts differ",
			s.SummaryVersion, s.SummaryThroughSeq, last.Version, last.ThroughSeq)
	}
	if n := int(last.ThroughSeq); s.SummarizedCount != n || last.MessagesCovered != n {
		c.Errorf("the summary counts %d messages, its version %d; up to seq %d there are %d", s.SummarizedCount, last.MessagesCovered, last.ThroughSeq, n)
	}
}

// Coverage checks that the newest summary, prepared or in use, covers the beginning of
// the log up to a message that ends a turn.
func (c *Check) Coverage() {
	if len(c.Summaries) == 0 {
		return
	}
	last := c.Summaries[len(c.Summaries)-1]
	if last.ThroughSeq > int64(len(c.Messages)) || c.Messages[last.ThroughSeq-1].ID != last.ThroughID {
		c.Errorf("the message with seq %d is not %s, through which the summary goes", last.ThroughSeq, last.ThroughID)
		return
	}
	if last.ThroughSeq < int64(len(c.Messages)) && c.Messages[last.ThroughSeq].Role == core.RoleTool {
		c.Errorf("the summary ends at seq %d, between a tool call and its result", last.ThroughSeq)
	}
}
