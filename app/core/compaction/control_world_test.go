package compaction_test

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
)

// control returns a Control over the world's keeper.
func (w *world) control() *compaction.Control {
	return compaction.NewControl(w.keeper, compaction.ControlStores{
		Messages: found{w.store}, Summaries: versions{w.store}, Sessions: w.store, Policies: presets{},
	})
}

// presets are the policies without global settings.
type presets struct{}

// Preset is agents.Profiles.Preset.
func (presets) Preset(name string) (contextwindow.Policy, error) {
	return contextwindow.Resolve(contextwindow.Global{}, core.ContextSettings{Policy: name})
}

// found is the store as the messages of a Control.
type found struct{ *store }

// Get is Messages.Get.
func (f found) Get(_ context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (out core.Message, err error) {
	err = f.at("Messages.Get", func() error {
		if err := f.knows(scope, session); err != nil {
			return err
		}
		for _, m := range slices.Concat(f.log, f.aside) {
			if m.ID == id {
				out = m
				return nil
			}
		}
		return core.Errorf(core.ErrNotFound, "message %s does not exist", id)
	})
	return out, err
}

// versions is the store as the summaries of a Control.
type versions struct{ *store }

// Get is Summaries.Get.
func (v versions) Get(_ context.Context, scope core.Scope, id core.SessionID, version int) (out core.Summary, err error) {
	err = v.at("Summaries.Get", func() error {
		if version < 1 || version > len(v.summaries) {
			return core.Errorf(core.ErrNotFound, "session %s has no summary with version %d", id, version)
		}
		out = v.summaries[version-1]
		return v.knows(scope, id)
	})
	return out, err
}

// Before is Summaries.Before.
func (v versions) Before(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error) {
	return v.Get(ctx, scope, id, version-1)
}

// Restorable is Summaries.Restorable, for which all versions of a small store are.
func (v versions) Restorable(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error) {
	return v.Get(ctx, scope, id, version)
}

// Loops is Summaries.Loops, for a store in which notes do not overlap.
func (v versions) Loops(_ context.Context, scope core.Scope, id core.SessionID, after int64) (out []core.Summary, err error) {
	err = v.at("Loops", func() error {
		for _, s := range v.summaries {
			if s.Kind == core.SummaryRun && s.FromSeq > after {
				out = append(out, s)
			}
		}
		return v.knows(scope, id)
	})
	return out, err
}

// FirstCovering is Summaries.FirstCovering.
func (v versions) FirstCovering(_ context.Context, scope core.Scope, id core.SessionID, seq int64) (version int, err error) {
	err = v.at("FirstCovering", func() error {
		i := slices.IndexFunc(v.summaries, func(s core.Summary) bool { return s.Kind != core.SummaryRun && s.ThroughSeq >= seq })
		version = i + 1
		return v.knows(scope, id)
	})
	return version, err
}

// RestoreSummary is Sessions.RestoreSummary.
func (s *store) RestoreSummary(_ context.Context, scope core.Scope, in core.SummaryRestore) (out core.Session, events []core.Event, err error) {
	err = s.at("RestoreSummary", func() error {
		if err := s.knows(scope, in.SessionID); err != nil {
			return err
		}
		if in.Expect != s.session.PromptRevision {
			return core.Errorf(core.ErrStale, "session %s was compacted by somebody else", in.SessionID)
		}
		s.session.PromptRevision++
		s.session.PromptState = in.PromptState
		now := &s.session
		if in.Version > 0 {
			repeated := s.summaries[in.Version-1]
			repeated.Version, repeated.State, repeated.Trigger, repeated.CreatedAt = 0, core.SummaryActive, core.TriggerRestore, core.Now()
			s.activate(repeated)
		} else {
			now.ConversationSummary, now.SummaryThroughID, now.SummaryThroughSeq = nil, nil, 0
			now.SummaryVersion, now.SummaryTokens, now.SummarizedCount, now.LastSummarizedAt = 0, 0, 0, nil
		}
		events = s.number(in.Events)
		out = s.session
		return nil
	})
	return out, events, err
}
