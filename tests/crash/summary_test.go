package crash_test

import (
	"slices"

	"gorm.io/gorm"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// summaries reads the session and its summaries that were in use, by version.
func (c *chaos) summaries(g *gorm.DB, id core.SessionID) (core.Session, []core.Summary) {
	c.t.Helper()
	ctx, scope := c.t.Context(), core.Scope{Owner: core.LocalOwner}
	session, err := repositories.NewSessions(g).Get(ctx, scope, id)
	if err != nil {
		c.t.Fatal(err)
	}
	versions := pages(c.t, func(q core.PageQuery) (core.Page[core.Summary], error) {
		return repositories.NewSummaries(g).List(ctx, scope, id, q)
	})
	slices.Reverse(versions)
	// One that is prepared is in no prompt yet.
	versions = slices.DeleteFunc(versions, func(s core.Summary) bool { return s.State == core.SummaryPrepared })
	return session, versions
}

// used are the versions that came into use, and ready is the one that is prepared; nil =
// none is.
func (v *verifier) used() (used []core.Summary, ready *core.Summary) {
	for _, sum := range v.summaries {
		switch {
		case sum.ActivatedAt != nil:
			used = append(used, sum)
		case sum.State == core.SummaryPrepared && ready == nil:
			ready = &sum
		case sum.State != core.SummaryDropped:
			v.errorf("summary %d was never used and is %s", sum.Version, sum.State)
		}
	}
	return used, ready
}

// checkVersions: each version in use goes on where the one before ends, the newest of
// them is the active one, and the session's summary is that version, whole. What is
// prepared goes further.
func (v *verifier) checkVersions() {
	for i, sum := range v.summaries {
		if sum.Version != i+1 || sum.Content == "" {
			v.errorf("summary %d has version %d, and %d bytes", i+1, sum.Version, len(sum.Content))
		}
	}
	used, ready := v.used()
	var through int64
	for i, sum := range used {
		if newest := i == len(used)-1; (sum.State == core.SummaryActive) != newest || sum.ThroughSeq <= through {
			v.errorf("summary %d is %s, and goes from %d to %d", sum.Version, sum.State, through, sum.ThroughSeq)
		}
		through = sum.ThroughSeq
	}
	s := v.session
	if ready != nil && ready.ThroughSeq <= s.SummaryThroughSeq {
		v.errorf("summary %d is prepared up to %d, the one in use goes to %d", ready.Version, ready.ThroughSeq, s.SummaryThroughSeq)
	}
	v.checkInUse(used)
}

// checkInUse: the session's summary is the newest that came into use.
func (v *verifier) checkInUse(used []core.Summary) {
	s := v.session
	if len(used) == 0 {
		if s.SummaryVersion != 0 || s.ConversationSummary != nil || s.SummaryThroughID != nil || s.SummarizedCount != 0 {
			v.errorf("there is no summary, but the session has version %d", s.SummaryVersion)
		}
		return
	}
	last := used[len(used)-1]
	if s.ConversationSummary == nil || s.SummaryThroughID == nil || s.LastSummarizedAt == nil {
		v.errorf("there is summary %d, but the session has none", last.Version)
		return
	}
	if s.SummaryVersion != last.Version || s.SummaryCount != len(used) || *s.ConversationSummary != last.Content ||
		*s.SummaryThroughID != last.ThroughID || s.SummaryThroughSeq != last.ThroughSeq || s.SummaryTokens != last.TokenCount {
		v.errorf("the session has summary %d through %d, the newest version is %d through %d, or their texts differ",
			s.SummaryVersion, s.SummaryThroughSeq, last.Version, last.ThroughSeq)
	}
	if n := int(last.ThroughSeq); s.SummarizedCount != n || last.MessagesCovered != n {
		v.errorf("the summary counts %d messages, its version %d; up to seq %d there are %d", s.SummarizedCount, last.MessagesCovered, last.ThroughSeq, n)
	}
}

// checkSummary: who asked for a summary was told what is there, and the newest, prepared
// or in use, covers the beginning of the log up to a message that ends a turn.
func (c *chaos) checkSummary(v *verifier) {
	asked := c.talk.summaries[v.session.ID]
	v.found.summaries += len(v.summaries)
	v.found.asked += len(asked)
	for _, told := range asked {
		if told.Version < 1 || told.Version > len(v.summaries) || v.summaries[told.Version-1].Content != told.Content {
			v.errorf("a request was answered with summary %d, which is not there", told.Version)
		}
	}
	for _, sum := range v.summaries {
		if sum.Note != "" {
			v.found.fallbacks++
		}
	}
	if len(v.summaries) == 0 {
		return
	}
	last := v.summaries[len(v.summaries)-1]
	if last.ThroughSeq > int64(len(v.messages)) || v.messages[last.ThroughSeq-1].ID != last.ThroughID {
		v.errorf("the message with seq %d is not %s, through which the summary goes", last.ThroughSeq, last.ThroughID)
		return
	}
	if last.ThroughSeq < int64(len(v.messages)) && v.messages[last.ThroughSeq].Role == core.RoleTool {
		v.errorf("the summary ends at seq %d, between a tool call and its result", last.ThroughSeq)
	}
}
