package compaction

import (
	"context"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// How many of the newest versions a report shows in full, and how many it lists.
const (
	reportedSummaries = 5
	reportedVersions  = 20
)

// maxSnapshots bounds how often a report is restarted because the conversation changed meanwhile.
const maxSnapshots = 5

// Report describes the session's next prompt. It changes nothing: it is the same plan that
// the next model call makes, between runs without the message that is not written yet. If
// that message first causes a summary, the report describes the prompt before it as far as it fits, counts what
// does not as summarized, and its last reason says so.
func (c *Inspector) Report(ctx context.Context, tenant core.Tenant, id core.SessionID) (core.ContextReport, error) {
	_, r, err := c.reportNext(ctx, tenant, id, core.PlanPreview{})
	if err == nil {
		c.reportCoverage(ctx, id, r.Coverage.Lost)
	}
	return r, err
}

// reportNext returns the next prompt under the conditions of the preview, and its report. It begins again if
// messages are deleted or another branch is selected meanwhile.
func (c *Inspector) reportNext(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (v snapshot, r core.ContextReport, err error) {
	defer c.acquireView(ctx)()
	for range maxSnapshots {
		if v, err = c.loadSnapshot(ctx, tenant, id, ask); err != nil {
			return v, core.ContextReport{}, err
		}
		if r, err = c.fullReport(ctx, tenant, v); err != nil {
			return v, core.ContextReport{}, err
		}
		if r.Coverage.Lost == 0 {
			break
		}
	}
	page, err := c.Stores.Summaries.List(ctx, tenant, id, core.PageQuery{Limit: 2 * reportedSummaries})
	if err != nil {
		return v, r, fmt.Errorf("list summaries: %w", err)
	}
	if r.Versions, err = c.Stores.Summaries.Versions(ctx, tenant, id); err != nil {
		return v, r, fmt.Errorf("versions of the summary: %w", err)
	}
	r.Versions = r.Versions[max(len(r.Versions)-reportedVersions, 0):]
	for _, s := range page.Items {
		switch {
		case s.State == core.SummaryPrepared:
			r.Prepared = &s
		case s.ActivatedAt != nil && len(r.Summaries) < reportedSummaries:
			r.Summaries = append(r.Summaries, s)
		}
	}
	return v, r, nil
}

// checkCoverage counts the conversation of a turn whose summary has changed, as far as its session had come:
// each message is behind the cursor or after it. It ignores storage errors: the next summary counts again.
func (k *Compactor) checkCoverage(ctx context.Context, t Turn) {
	t = t.behindSummary()
	var lost int
	for range maxSnapshots {
		onPath, err := k.Stores.Messages.CountOnPath(ctx, scopeOf(t), t.Session.ID, int64(t.wholeLog()))
		if err != nil {
			return
		}
		if lost = onPath - t.Session.SummarizedCount - len(t.History) - len(t.Run); lost == 0 {
			break
		}
		t.Run = nil // messages arrived between the turn and its session
		if t, err = k.reloadTurn(ctx, t); err != nil {
			return
		}
	}
	k.reportCoverage(ctx, t.Session.ID, lost)
}

// reportCoverage notifies the observer, and logs lost messages.
func (k *Compactor) reportCoverage(ctx context.Context, id core.SessionID, lost int) {
	k.Observer.Count(core.CountChecks, 1)
	k.Observer.Count(core.CountLost, max(lost, -lost))
	if lost != 0 {
		k.Logger.ErrorContext(ctx, "messages lost from the context", "session_id", id, "lost", lost)
	}
}

// fullReport is Describe with what only storage knows, except the summaries.
func (c *Inspector) fullReport(ctx context.Context, tenant core.Tenant, v snapshot) (core.ContextReport, error) {
	r := c.Describe(v.turn, v.d, v.prompt.Sent)
	r.TurnsLeft, r.WillTrigger = v.d.TurnsLeft, v.d.WillTrigger
	first := firstStep(v.d)
	for _, s := range v.d.History {
		if s.Place == core.PlaceLeftOut && first.covers(s.Seq) {
			r.Coverage.LeftOut--
			r.Coverage.Summarized++
		}
	}
	if v.older != "" {
		r.SummaryReason = strings.TrimSpace(v.older + ". " + r.SummaryReason)
	}
	if recalled := v.turn.Recalled; recalled != nil && recalled.failure != "" {
		r.Reasons = append(r.Reasons, recalled.failure)
	}
	if err := c.reportInstructions(ctx, v, &r); err != nil {
		return core.ContextReport{}, err
	}
	for _, note := range []string{shortenedReason(v.d), first.text} {
		if note != "" {
			r.Reasons = append(r.Reasons, note)
		}
	}
	log := v.turn.wholeLog()
	onPath, err := c.Stores.Messages.CountOnPath(ctx, tenant, v.turn.Session.ID, int64(log-v.more))
	if err != nil {
		return core.ContextReport{}, fmt.Errorf("count messages: %w", err)
	}
	onPath += v.more
	r.Coverage.Lost = onPath - r.Coverage.Messages
	r.Coverage.Messages, r.Coverage.Excluded = log, r.Coverage.Excluded+log-onPath
	return r, nil
}

// step is what happens before a prompt can be sent, and to which messages; the zero step = nothing.
type step struct {
	text          string
	from, through int64
}

// covers reports whether the step is about the message.
func (s step) covers(seq int64) bool { return s.from <= seq && seq <= s.through }

// firstStep returns what happens before the prompt of the decision can be sent.
func firstStep(d contextwindow.Decision) step {
	what := "message"
	if len(d.Run) > 0 {
		what = "model call"
	}
	switch o := d.Summarize; {
	case d.Activate != nil:
		return step{fmt.Sprintf("the next %s first activates version %d of the summary, which is ready (%s)", what, d.Activate.Version, d.Activate.Trigger), 1, d.Activate.ThroughSeq}
	case o == nil:
		return step{}
	case o.Kind == core.SummaryRun:
		return step{fmt.Sprintf("the next %s first replaces the oldest %d messages of the tool loop with notes (%s)", what, o.Messages, o.Trigger), o.FromSeq, o.ThroughSeq}
	default:
		return step{fmt.Sprintf("the next %s first summarizes the oldest %d messages (%s)", what, o.Messages, o.Trigger), o.FromSeq, o.ThroughSeq}
	}
}

// Describe returns the report of a decision and its prompt, without what only storage knows.
func (k *Compactor) Describe(t Turn, d contextwindow.Decision, sent contextwindow.PromptSize) core.ContextReport {
	info := t.Profile.Model.Info()
	e, reasons := k.Calibrator.Estimate(info.Name, t.Session.ID), append([]string{}, d.Reasons...)
	_, from := k.turnWindow(t)
	c := coverageOf(t.Session.SummarizedCount, d)
	if d.LacksSummary {
		c.LeftOut, c.Summarized = c.LeftOut+c.Summarized, 0
	}
	c.Excluded = len(t.History) + len(t.Run) - len(d.History) - len(d.Run)
	c.Messages += c.Excluded
	r := core.ContextReport{
		Model: info.Name, Policy: t.Profile.Policy.Name,
		Window: d.Budget.Window, WindowFrom: string(from), Reserve: d.Budget.Reserve, Usable: d.Budget.Usable, Landing: d.Budget.Landing,
		Used: sent.Used(d), Planned: d.Total, Free: max(d.Budget.Usable-sent.Used(d), 0), MaxOutput: d.MaxOutput,
		Sections: sent.Sections(d), Triggers: d.Triggers, Coverage: c, Breaker: "closed",
		OpenUntil: t.Work.Breaker.Until, Failure: t.Work.Breaker.Reason, Summarizing: t.Work.Busy, Since: t.Work.Since,
		SummaryVersion: t.Session.SummaryVersion, SummaryReason: k.summaryReason(t),
		Calibration: core.CalibrationView{Measured: e.Measured, Factor: e.Factor, Deviation: e.Deviation, Samples: e.Samples},
		Rungs:       []string{}, Reasons: reasons, Summaries: []core.Summary{},
	}
	r.Thoughts = k.describeThoughts(t, sent.Thoughts)
	if d.Budget.HasShare {
		r.Trigger = d.Budget.Trigger
	}
	if t.Work.Breaker.Until != nil {
		r.Breaker = "open"
	}
	if r.Triggers == nil {
		r.Triggers = []core.TriggerStatus{}
	}
	for _, n := range d.Rungs {
		r.Rungs = append(r.Rungs, contextwindow.RungName(n))
	}
	return r
}

// coverageOf counts where the decision has its messages, behind a summary of so many.
func coverageOf(summarized int, d contextwindow.Decision) core.Coverage {
	c := core.Coverage{Messages: summarized + len(d.History) + len(d.Run), Summarized: summarized}
	for _, slots := range [][]contextwindow.Slot{d.History, d.Run} {
		for _, s := range slots {
			switch s.Place {
			case core.PlaceCovered:
				c.Compacted++
			case core.PlaceMasked:
				c.Masked++
			case core.PlaceShortened:
				c.Shortened++
			case core.PlaceLeftOut:
				c.LeftOut++
			default:
				c.Verbatim++
			}
		}
	}
	return c
}

// wholeLog returns how many messages the log has, on all branches: seq has no gaps.
func (t Turn) wholeLog() int {
	last := t.Session.LastSeq
	for _, list := range [][]core.Message{t.History, t.Run} {
		if n := len(list); n > 0 {
			last = max(last, list[n-1].Seq) // it may be newer than the session row
		}
	}
	return int(last)
}

// Prompt returns the exact prompt that would be sent now, under the conditions of the preview if it
// has any; its note says so if the next message first causes a summary.
func (c *Inspector) Prompt(ctx context.Context, tenant core.Tenant, id core.SessionID, ask core.PlanPreview) (core.PromptView, error) {
	defer c.acquireView(ctx)()
	v, err := c.loadSnapshot(ctx, tenant, id, ask)
	if err != nil {
		return core.PromptView{}, err
	}
	view := core.PromptView{
		Model: v.turn.Profile.Model.Info().Name, Tokens: v.prompt.Sent.Used(v.d), Note: firstStep(v.d).text, MaxOutputTokens: v.d.MaxOutput,
		System: v.prompt.System, SystemParts: []core.ContextPart{}, Messages: []core.PromptMessage{}, Tools: promptTools(v.prompt.Tools),
	}
	for _, b := range v.prompt.Blocks {
		view.SystemParts = append(view.SystemParts, core.ContextPart{Name: b.Section.String(), Tokens: v.d.Shown(b.Tokens)})
	}
	sizes := v.prompt.Shown(v.d)
	for i, m := range v.prompt.Messages {
		var parts []core.Part
		for _, media := range m.Media {
			parts = append(parts, media.Part)
		}
		view.Messages = append(view.Messages, core.PromptMessage{
			MessageID: m.ID, SummaryVersion: v.turn.Notes[m.Loop].Version, Placement: m.Place, Section: m.Section.String(), Role: m.Role, Content: m.Shown(),
			ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, Tokens: sizes[i], Media: parts,
			AddedTools: promptTools(m.AddedTools), RemovedTools: m.RemovedTools,
		})
	}
	view.Unchanged, err = c.compareWithLast(ctx, tenant, v)
	return view, err
}

// compareWithLast says which parts of the prompt the last model call was sent, too; nil if there was none.
func (c *Inspector) compareWithLast(ctx context.Context, tenant core.Tenant, v snapshot) (*core.UnchangedParts, error) {
	reports, _, err := c.Stores.Runs.Reports(ctx, tenant, v.turn.Session.ID, 1)
	if err != nil {
		return nil, fmt.Errorf("report of the last run: %w", err)
	}
	if len(reports) == 0 || reports[0].Report.Digests == "" { // it is of an earlier version
		return nil, nil //nolint:nilnil // no call, no comparison
	}
	last := reports[0].Report.Digests
	now := llm.Request{System: v.prompt.System, Tools: v.prompt.Tools, Messages: v.prompt.LLM()}.Digests()
	same := llm.CountEqual(last, now)
	tokens := v.prompt.Sent.Used(v.d)
	if same == 0 {
		tokens -= v.d.Shown(v.prompt.Sent.Of[contextwindow.SectionTools])
	}
	blocks := v.prompt.Blocks
	for _, b := range blocks[min(max(same-1, 0), len(blocks)):] {
		tokens -= v.d.Shown(b.Tokens)
	}
	sizes := v.prompt.Shown(v.d)
	for _, size := range sizes[min(max(same-1-len(blocks), 0), len(sizes)):] {
		tokens -= size
	}
	return &core.UnchangedParts{RunID: reports[0].RunID, At: reports[0].At, Parts: same, OfParts: llm.CountParts(last), Tokens: max(tokens, 0)}, nil
}

// promptTools returns the tool definitions as they are shown.
func promptTools(specs []llm.ToolSpec) []core.PromptTool {
	tools := make([]core.PromptTool, 0, len(specs))
	for _, s := range specs {
		tools = append(tools, core.PromptTool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return tools
}
