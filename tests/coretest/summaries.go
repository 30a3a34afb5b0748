package coretest

import (
	"cmp"
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/conversation"
)

// ApplyContext stores the result of a compaction. Unlike the repositories it leaves the prompt
// state's list of notes on tool loops to the caller.
func (r Sessions) ApplyContext(ctx context.Context, tenant core.Tenant, change core.ContextChange) (out core.Session, events []core.Event, err error) {
	err = r.s.inSession(ctx, "ApplyContext", tenant, change.SessionID, func(c *Conversation) error {
		if err := c.checkChange(change); err != nil {
			return err
		}
		version := c.changeSummary(change)
		switch {
		case change.Failure != "":
			c.countFailure(change.Failure)
		case change.Summary != nil && change.Summary.Model != "":
			c.Breaker = core.Breaker{}
		}
		c.emit(conversation.WithVersion(change.Events, version)...)
		c.Calls = append(c.Calls, change.ModelCalls...)
		out, events = c.Session, c.fresh
		return nil
	})
	return out, events, err
}

// checkChange returns the error of a change that must not be stored.
func (c *Conversation) checkChange(change core.ContextChange) error {
	if change.Expect != c.Session.PromptRevision {
		return core.Errorf(core.ErrStale, "session %s was compacted by another process", c.Session.ID)
	}
	if change.Activate == nil || *change.Activate == 0 {
		return nil
	}
	usable := func(v core.Summary) bool { return v.Version == *change.Activate && c.isUsable(v) }
	if *change.Activate == c.Session.SummaryVersion || !slices.ContainsFunc(c.Summaries, usable) {
		return core.Errorf(core.ErrStale, "summary %d can no longer be used", *change.Activate)
	}
	return nil
}

// changeSummary applies the change to the session's summary, and returns the new version; 0 =
// none.
func (c *Conversation) changeSummary(change core.ContextChange) int {
	if v := change.Summary; v != nil && v.State == core.SummaryPrepared {
		c.dropPrepared()
		return c.addVersion(*v).Version
	}
	c.raiseRevision(change.PromptState)
	switch {
	case change.Activate != nil && *change.Activate == 0:
		c.clearSummary()
	case change.Activate != nil:
		return c.activate(c.Summaries[*change.Activate-1])
	case change.Summary != nil:
		return c.activate(c.addVersion(*change.Summary))
	case change.Refused != "" && c.Session.NativeSummary != nil:
		n := *c.Session.NativeSummary
		n.Refused = change.Refused
		c.Session.NativeSummary, c.Summaries[c.Session.SummaryVersion-1].Native = &n, &n
	}
	return 0
}

func (c *Conversation) raiseRevision(state []byte) {
	c.Session.PromptRevision++
	if len(state) > 0 {
		c.Session.PromptState = state
	}
}

// addVersion stores the summary as the next version.
func (c *Conversation) addVersion(v core.Summary) core.Summary {
	v.ID, v.Kind = cmp.Or(v.ID, core.NewID[core.SummaryID]()), cmp.Or(v.Kind, core.SummaryRolling)
	v.SessionID, v.Owner, v.CreatedAt = c.Session.ID, c.Session.Owner, cmp.Or(v.CreatedAt, core.Now())
	v.Version, v.ActivatedAt = len(c.Summaries)+1, nil
	c.Summaries = append(c.Summaries, v)
	return v
}

// activate puts a version into use, a rolling one as the session's summary, and returns its
// number. The versions that it replaces are dropped.
func (c *Conversation) activate(v core.Summary) int {
	for i, old := range c.Summaries {
		covered := old.Kind == core.SummaryRun && old.ThroughSeq <= v.ThroughSeq && (v.Kind == core.SummaryRolling || old.FromSeq >= v.FromSeq)
		replaced := old.Kind == core.SummaryRolling && v.Kind == core.SummaryRolling && old.State == core.SummaryPrepared
		if old.State == core.SummaryActive && (covered || old.Kind == v.Kind && v.Kind == core.SummaryRolling) || replaced {
			c.Summaries[i].State = core.SummaryDropped
		}
	}
	now, before := core.Now(), c.Session.SummaryThroughSeq
	v.State, v.ActivatedAt = core.SummaryActive, &now
	c.Summaries[v.Version-1] = v
	s := &c.Session
	s.SummaryCount++
	if v.Kind == core.SummaryRun {
		return v.Version
	}
	s.ConversationSummary, s.SummaryThroughID, s.SummaryThroughSeq = &v.Content, &v.ThroughID, v.ThroughSeq
	s.SummaryVersion, s.SummaryTokens, s.SummarizedCount = v.Version, v.TokenCount, v.MessagesCovered
	s.SummaryCovered, s.SummaryMadeFor, s.LastSummarizedAt, s.NativeSummary = v.TokensCovered, v.MadeFor, v.ActivatedAt, v.Native
	if v.ThroughSeq < before {
		c.resumeLoops()
	}
	return v.Version
}

// clearSummary leaves the session without a summary.
func (c *Conversation) clearSummary() {
	for i, v := range c.Summaries {
		if v.Kind == core.SummaryRolling && (v.State == core.SummaryActive || v.State == core.SummaryPrepared) {
			c.Summaries[i].State = core.SummaryDropped
		}
	}
	s := &c.Session
	s.ConversationSummary, s.SummaryThroughID, s.SummaryThroughSeq = nil, nil, 0
	s.SummaryVersion, s.SummaryTokens, s.SummarizedCount, s.LastSummarizedAt = 0, 0, 0, nil
	s.SummaryCovered, s.SummaryMadeFor, s.NativeSummary = 0, 0, nil
	c.resumeLoops()
}

func (c *Conversation) dropPrepared() {
	for i, v := range c.Summaries {
		if v.State == core.SummaryPrepared {
			c.Summaries[i].State = core.SummaryDropped
		}
	}
}

// resumeLoops activates the notes on tool loops that are valid behind the cursor.
func (c *Conversation) resumeLoops() {
	for _, v := range c.loops(c.Session.SummaryThroughSeq) {
		c.Summaries[v.Version-1].State = core.SummaryActive
	}
}

// RestoreSummary makes an earlier version the active one.
func (r Sessions) RestoreSummary(ctx context.Context, tenant core.Tenant, in core.SummaryRestore) (out core.Session, events []core.Event, err error) {
	err = r.s.inSession(ctx, "RestoreSummary", tenant, in.SessionID, func(c *Conversation) error {
		if in.Expect != c.Session.PromptRevision {
			return core.Errorf(core.ErrStale, "session %s was compacted by another process", in.SessionID)
		}
		repeated, version := core.Summary{}, 0
		if in.Version > 0 {
			v, err := c.restorable(in.Version)
			if err != nil {
				return err
			}
			repeated = v
		}
		c.raiseRevision(in.PromptState)
		for i, v := range c.Summaries {
			later := v.ThroughSeq > repeated.ThroughSeq || v.ThroughSeq == repeated.ThroughSeq && v.Version > repeated.Version
			if v.Kind == core.SummaryRolling && v.State != core.SummaryErased && later {
				c.Summaries[i].State = core.SummaryUndone
			}
		}
		if in.Version == 0 {
			c.clearSummary()
		} else {
			repeated.ID, repeated.Trigger, repeated.MadeFor, repeated.CreatedAt = "", core.TriggerRestore, 0, core.Now()
			version = c.activate(c.addVersion(repeated))
			c.resumeLoops()
		}
		c.emit(conversation.WithVersion(in.Events, version)...)
		out, events = r.s.withRuns(c), c.fresh
		return nil
	})
	return out, events, err
}

// Summaries are the summaries of a Store.
type Summaries struct {
	core.SummaryStore // the methods that no test calls
	s                 *Store
}

// List returns the versions, the newest first.
func (r Summaries) List(ctx context.Context, tenant core.Tenant, session core.SessionID, q core.PageQuery) (out core.Page[core.Summary], err error) {
	err = r.s.inSession(ctx, "Summaries.List", tenant, session, func(c *Conversation) error {
		out.Items = slices.Clone(c.Summaries)
		slices.Reverse(out.Items)
		if q.Limit > 0 {
			out.Items = out.Items[:min(q.Limit, len(out.Items))]
		}
		return nil
	})
	return out, err
}

// Find returns the versions with these ids.
func (r Summaries) Find(ctx context.Context, tenant core.Tenant, session core.SessionID, ids []core.SummaryID) (out []core.Summary, err error) {
	err = r.s.inSession(ctx, "Summaries.Find", tenant, session, func(c *Conversation) error {
		out = slices.DeleteFunc(slices.Clone(c.Summaries), func(v core.Summary) bool { return !slices.Contains(ids, v.ID) })
		return nil
	})
	return out, err
}

// Get returns one version.
func (r Summaries) Get(ctx context.Context, tenant core.Tenant, session core.SessionID, version int) (out core.Summary, err error) {
	err = r.s.inSession(ctx, "Summaries.Get", tenant, session, func(c *Conversation) error {
		if version < 1 || version > len(c.Summaries) {
			return core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", session, version)
		}
		out = c.Summaries[version-1]
		return nil
	})
	return out, err
}

// Before returns the newest version before the given one that still has its text.
func (r Summaries) Before(ctx context.Context, tenant core.Tenant, session core.SessionID, version int) (out core.Summary, err error) {
	err = r.s.inSession(ctx, "Before", tenant, session, func(c *Conversation) error {
		for _, v := range slices.Backward(c.Summaries) {
			if v.Version < version && v.Kind == core.SummaryRolling && v.State != core.SummaryErased && v.ActivatedAt != nil {
				out = v
				return nil
			}
		}
		return core.Errorf(core.ErrNotFound, "session %s has no summary before version %d", session, version)
	})
	return out, err
}

// Restorable returns a version that can be restored.
func (r Summaries) Restorable(ctx context.Context, tenant core.Tenant, session core.SessionID, version int) (out core.Summary, err error) {
	err = r.s.inSession(ctx, "Restorable", tenant, session, func(c *Conversation) error {
		out, err = c.restorable(version)
		return err
	})
	return out, err
}

// restorable is Restorable for the caller that holds the lock.
func (c *Conversation) restorable(version int) (core.Summary, error) {
	if version < 1 || version > len(c.Summaries) {
		return core.Summary{}, core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", c.Session.ID, version)
	}
	v := c.Summaries[version-1]
	if v.Kind != core.SummaryRolling || v.State == core.SummaryErased || v.ActivatedAt == nil || !c.endsOnPath(v) {
		return core.Summary{}, core.Errorf(core.ErrUnprocessable, "version %d cannot be restored", version)
	}
	return v, nil
}

// FirstCovering returns the first version that covered a message of the path; 0 = none.
func (r Summaries) FirstCovering(ctx context.Context, tenant core.Tenant, session core.SessionID, seq int64) (version int, err error) {
	err = r.s.inSession(ctx, "FirstCovering", tenant, session, func(c *Conversation) error {
		version = 1 + slices.IndexFunc(c.Summaries, func(v core.Summary) bool {
			return v.Kind == core.SummaryRolling && v.ActivatedAt != nil && v.ThroughSeq >= seq && c.endsOnPath(v)
		})
		return nil
	})
	return version, err
}

// Versions returns the versions that a prompt can use, ordered by what they cover.
func (r Summaries) Versions(ctx context.Context, tenant core.Tenant, session core.SessionID) (out []core.SummaryVersion, err error) {
	err = r.s.inSession(ctx, "Versions", tenant, session, func(c *Conversation) error {
		for _, v := range c.Summaries {
			if c.isUsable(v) {
				out = append(out, v.AsVersion())
			}
		}
		slices.SortFunc(out, func(a, b core.SummaryVersion) int {
			return cmp.Or(cmp.Compare(a.ThroughSeq, b.ThroughSeq), b.Version-a.Version)
		})
		out = slices.CompactFunc(out, func(a, b core.SummaryVersion) bool { return a.ThroughSeq == b.ThroughSeq })
		return nil
	})
	return out, err
}

// Covered returns the tokens of the messages that each version covers.
func (r Summaries) Covered(ctx context.Context, tenant core.Tenant, session core.SessionID) (map[int]int, error) {
	covered := map[int]int{}
	return covered, r.s.inSession(ctx, "Covered", tenant, session, func(c *Conversation) error {
		for _, v := range c.Summaries {
			covered[v.Version] = v.TokensCovered
		}
		return nil
	})
}

// isUsable reports whether a prompt can contain the version.
func (c *Conversation) isUsable(v core.Summary) bool {
	used := (v.State == core.SummaryActive || v.State == core.SummaryDropped) && (v.ActivatedAt != nil || v.MadeFor > 0)
	return v.Kind == core.SummaryRolling && (used || v.State == core.SummaryPrepared) && c.endsOnPath(v)
}

// endsOnPath reports whether the last message of a summary is on the path.
func (c *Conversation) endsOnPath(v core.Summary) bool {
	i := c.indexOf(v.ThroughID)
	return i >= 0 && c.Messages[i].OnPath
}

// Loops returns the notes on tool loops behind a cursor.
func (r Summaries) Loops(ctx context.Context, tenant core.Tenant, session core.SessionID, after int64) (out []core.Summary, err error) {
	err = r.s.inSession(ctx, "Loops", tenant, session, func(c *Conversation) error {
		out = c.loops(after)
		return nil
	})
	return out, err
}

// loops returns the notes behind a cursor, of overlapping ones the longest.
func (c *Conversation) loops(after int64) []core.Summary {
	out := slices.DeleteFunc(slices.Clone(c.Summaries), func(v core.Summary) bool {
		inUse := v.State == core.SummaryActive || v.State == core.SummaryDropped
		return v.Kind != core.SummaryRun || !inUse || v.FromSeq <= after || !c.endsOnPath(v)
	})
	slices.SortFunc(out, func(a, b core.Summary) int {
		return cmp.Or(cmp.Compare(a.FromSeq, b.FromSeq), cmp.Compare(b.ThroughSeq, a.ThroughSeq), b.Version-a.Version)
	})
	through := int64(0)
	return slices.DeleteFunc(out, func(v core.Summary) bool {
		inside := v.FromSeq <= through
		through = max(through, v.ThroughSeq)
		return inside
	})
}
