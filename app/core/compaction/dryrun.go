package compaction

import (
	"context"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// DryRun plans the session's next prompt for another agent, model or policy, or with a text
// as the next message. It changes nothing and calls no model; the plan is that of Fit, with
// every summary at its maximum size. A prompt that cannot be sent is not an error here.
// Errors: ErrNotFound; ErrInvalid for an agent, a model or a policy that does not exist.
func (c *Inspector) DryRun(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.ContextPlan, error) {
	v, report, err := c.reportNext(ctx, tenant, id, ask)
	if err != nil {
		return core.ContextPlan{}, err
	}
	last, order, activated := simulateFit(v.in)
	if order != nil && order.When == core.WhenNow && v.d.Summarize == nil && v.d.Activate == nil { // in several calls
		last, order.When = plan{in: v.in, d: v.d}, core.WhenBackground
	}
	for _, rung := range last.d.Rungs {
		if name := contextwindow.RungName(rung); !slices.Contains(report.Rungs, name) {
			report.Rungs = append(report.Rungs, name)
		}
	}
	for _, reason := range last.d.Reasons {
		if !slices.Contains(report.Reasons, reason) {
			report.Reasons = append(report.Reasons, reason)
		}
	}
	planned := core.ContextPlan{Fits: last.d.Floor == nil, Tokens: last.d.Total, Summarize: order, Activate: activated, Context: report}
	planned.Coverage = coverageOf(last.in.Summary.Messages, last.d)
	planned.Coverage.Excluded = report.Coverage.Messages - report.Coverage.Lost - planned.Coverage.Messages
	planned.Coverage.Messages, planned.Coverage.Lost = report.Coverage.Messages, report.Coverage.Lost
	if f := last.d.Floor; f != nil {
		planned.Floor = &core.ContextFloor{Culprit: f.Culprit, Tokens: f.Floor, Usable: f.Usable, Detail: f.Error()}
	}
	if v.d.Summarize == nil && v.d.Activate == nil { // the prompt is known exactly
		planned.Tokens, planned.Coverage = report.Used, report.Coverage
	}
	return planned, nil
}

// maxRounds bounds how many summaries are simulated.
const maxRounds = 3

// simulateFit simulates Fit. It returns the last plan, what is summarized before or
// beside the prompt (nil = nothing), and which version is activated.
func simulateFit(in contextwindow.Input) (last plan, order *core.PlannedSummary, activated int) {
	in.OrderLimit = 0 // the final result, however many calls it takes
	p := newPlan(in)
	for round := 1; p.d.Summarize != nil || p.d.Activate != nil; round++ {
		in = p.in
		in.State, in.NoSummary, in.NoLoop = p.state, round >= maxRounds, round >= maxRounds
		switch {
		case p.d.Activate != nil:
			activated, in = p.d.Activate.Version, in.Activated(p.d.Activate.SummaryVersion)
		case p.d.Summarize.Kind == core.SummaryRun: // of the run in progress, not of the conversation
			o := *p.d.Summarize
			o.SummaryID = core.NewID[core.SummaryID]()
			in = in.After(o, o.Limit, o.Messages)
		default:
			o := *p.d.Summarize
			order = withOrder(order, o, in.Summary.Tokens)
			in = in.After(o, o.Limit, in.Summary.Messages+o.Messages)
		}
		p = newPlan(in)
	}
	last = p
	if order == nil && p.d.Floor == nil {
		when, o := core.WhenAhead, p.d.Prepare
		if slices.ContainsFunc(p.d.Triggers, func(t core.TriggerStatus) bool { return t.Fires }) {
			when = core.WhenBackground
		}
		if o == nil {
			p.in.Phase = contextwindow.AfterRun
			d, _ := contextwindow.Plan(p.in)
			when, o = core.WhenAfterRun, d.Summarize
		}
		if o != nil {
			order = withOrder(nil, *o, p.in.Summary.Tokens)
			order.When = when
		}
	}
	return last, order, activated
}

// withOrder adds an order to a planned summary; previous is the tokens of the summary before
// it.
func withOrder(sum *core.PlannedSummary, o contextwindow.Order, previous int) *core.PlannedSummary {
	if sum == nil {
		sum = &core.PlannedSummary{When: core.WhenNow, FromID: o.FromID, FromSeq: o.FromSeq, Tokens: previous, Trigger: o.Trigger}
	}
	sum.ThroughID, sum.ThroughSeq, sum.MaxTokens = o.ThroughID, o.ThroughSeq, o.Limit
	sum.Messages += o.Messages
	sum.Tokens += o.Tokens - previous
	return sum
}
