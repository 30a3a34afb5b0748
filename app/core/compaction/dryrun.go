package compaction

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// DryRun plans the session's next prompt for another model, another policy, or with
// a text as the next message. It changes nothing and calls no model; the plan is
// that of Fit, with every summary as long as it may be. That nothing can be sent is
// no error here. Errors: ErrNotFound, ErrInvalid for a model or a policy that does
// not exist.
func (c *Control) DryRun(ctx context.Context, scope core.Scope, id core.SessionID, ask core.DryRun) (core.ContextPlan, error) {
	var v looked
	var report core.ContextReport
	for range maxLooks {
		t, more, err := c.asked(ctx, scope, id, ask)
		if err == nil {
			v, err = c.keeper.lookAt(ctx, t)
		}
		if err != nil {
			return core.ContextPlan{}, err
		}
		var whole bool
		if report, whole, err = c.keeper.fullReport(ctx, scope, v, more); err != nil {
			return core.ContextPlan{}, err
		}
		if whole {
			break
		}
	}
	if err := c.keeper.addSummaries(ctx, scope, id, &report); err != nil {
		return core.ContextPlan{}, err
	}
	last, order, activated := outlook(v.in)
	for _, rung := range last.Rungs {
		if name := contextwindow.RungName(rung); !slices.Contains(report.Rungs, name) {
			report.Rungs = append(report.Rungs, name)
		}
	}
	for _, reason := range last.Reasons {
		if !slices.Contains(report.Reasons, reason) {
			report.Reasons = append(report.Reasons, reason)
		}
	}
	plan := core.ContextPlan{Fits: last.Floor == nil, Tokens: last.Total, Summarize: order, Activate: activated, Floor: floorOf(last), Context: report}
	if v.d.Summarize == nil && v.d.Activate == nil { // it is known to the word
		plan.Tokens = report.Used
	}
	return plan, nil
}

// asked returns the turn that is asked about, and how many of its messages are not in
// the log.
func (c *Control) asked(ctx context.Context, scope core.Scope, id core.SessionID, ask core.DryRun) (t Turn, more int, err error) {
	if t, err = c.keeper.profiled(ctx, scope, id, ask.Model); err != nil {
		return Turn{}, 0, err
	}
	if t, err = c.keeper.loaded(ctx, scope, t); err != nil {
		return Turn{}, 0, err
	}
	if t, err = c.keeper.atWork(ctx, t); err != nil {
		return Turn{}, 0, err
	}
	if ask.Policy != "" {
		if t.Profile.Policy, err = c.stores.Policies.Preset(ask.Policy); err != nil {
			return Turn{}, 0, err
		}
	}
	if ask.Content == "" {
		return t, 0, nil
	}
	return t.saying(ask), 1, nil
}

// saying returns the turn with the message that is asked about at its end. A run in
// progress has ended by then.
func (t Turn) saying(ask core.DryRun) Turn {
	m := core.Message{
		ID: core.NewID[core.MessageID](), Seq: int64(t.wholeLog()) + 1, OnPath: true,
		Role: core.RoleUser, Content: ask.Content, TokenCount: ask.Tokens,
	}
	t.History, t.Run = slices.Concat(t.History, t.Run), []core.Message{m}
	return t
}

// outlook plays through what Fit would do: the last decision, what is summarized on
// the way or beside it, nil = nothing, and which version is put to use.
func outlook(in contextwindow.Input) (last contextwindow.Decision, order *core.PlannedSummary, activated int) {
	p := replan(in)
	if p.d.Summarize != nil {
		if d, ok := hopeless(in); ok {
			return d, nil, 0
		}
	}
	for round := 1; p.d.Summarize != nil || p.d.Activate != nil; round++ {
		in = p.in
		in.State, in.NoSummary, in.NoLoop = p.state, round >= maxRounds, round >= maxRounds
		switch {
		case p.d.Activate != nil:
			activated, in = p.d.Activate.Version, in.Activated()
		case p.d.Summarize.Kind == core.SummaryRun: // of the run in progress, not of the conversation
			o := *p.d.Summarize
			o.SummaryID = core.NewID[core.SummaryID]()
			in = in.After(o, o.Limit, o.Messages)
		default:
			o := *p.d.Summarize
			order = withOrder(order, o, in.Summary.Tokens)
			in = in.After(o, o.Limit, in.Summary.Messages+o.Messages)
		}
		p = replan(in)
	}
	if order == nil && p.d.Floor == nil {
		order = later(p)
	}
	return p.d, order, activated
}

// later returns what is summarized although the prompt is sent as it is; nil =
// nothing.
func later(p plan) *core.PlannedSummary {
	when, o := core.WhenAhead, p.d.Prepare
	if slices.ContainsFunc(p.d.Triggers, func(t core.TriggerStatus) bool { return t.Fires }) {
		when = core.WhenBackground
	}
	if o == nil {
		p.in.Moment = contextwindow.AfterRun
		d, _ := contextwindow.Plan(p.in)
		when, o = core.WhenAfterRun, d.Summarize
	}
	if o == nil {
		return nil
	}
	order := withOrder(nil, *o, p.in.Summary.Tokens)
	order.When = when
	return order
}

// withOrder adds an order to what is summarized already; so is the number of tokens
// that the summary had before it.
func withOrder(sum *core.PlannedSummary, o contextwindow.Order, so int) *core.PlannedSummary {
	if sum == nil {
		sum = &core.PlannedSummary{When: core.WhenNow, FromID: o.FromID, FromSeq: o.FromSeq, Tokens: so, Trigger: o.Trigger}
	}
	sum.ThroughID, sum.ThroughSeq, sum.MaxTokens = o.ThroughID, o.ThroughSeq, o.Limit
	sum.Messages += o.Messages
	sum.Tokens += o.Tokens - so
	return sum
}

// floorOf returns why nothing can be sent; nil = something can.
func floorOf(d contextwindow.Decision) *core.ContextFloor {
	if d.Floor == nil {
		return nil
	}
	return &core.ContextFloor{Culprit: d.Floor.Culprit, Tokens: d.Floor.Floor, Usable: d.Floor.Usable, Detail: d.Floor.Error()}
}
