package compaction

import (
	"context"
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// reportedSummaries is how many of the newest versions a report shows.
const reportedSummaries = 5

// maxLooks bounds how often a report is begun anew because messages came while it
// was made.
const maxLooks = 5

// Report says what the session's next prompt is made of. It changes nothing: it
// is the same plan that the next model call makes, between runs without the
// message that is not written yet. Where that message first has others summarized
// the report is of the prompt before, and its last reason says so.
func (k *Keeper) Report(ctx context.Context, scope core.Scope, id core.SessionID) (core.ContextReport, error) {
	var r core.ContextReport
	for range maxLooks {
		v, err := k.look(ctx, scope, id)
		if err != nil {
			return core.ContextReport{}, err
		}
		var whole bool
		if r, whole, err = k.fullReport(ctx, scope, v, 0); err != nil {
			return core.ContextReport{}, err
		}
		if whole {
			break
		}
	}
	err := k.addSummaries(ctx, scope, id, &r)
	return r, err
}

// fullReport is Describe with what only storage knows, but for the summaries. More is
// how many messages at the turn's end are not in the log. Whole is false if messages
// came since the turn was loaded.
func (k *Keeper) fullReport(ctx context.Context, scope core.Scope, v looked, more int) (r core.ContextReport, whole bool, err error) {
	r = k.Describe(v.turn, v.d, v.prompt.Sent)
	r.TurnsLeft = turnsLeft(v.in, v.d)
	r.WillTrigger = v.d.Summarize != nil || v.d.Activate != nil || willTrigger(v.in, v.d)
	if note := first(v.d); note != "" {
		r.Reasons = append(r.Reasons, note)
	}
	onPath, err := k.Stores.Messages.CountOnPath(ctx, scope, v.turn.Session.ID)
	if err != nil {
		return core.ContextReport{}, false, fmt.Errorf("count messages: %w", err)
	}
	onPath += more
	r.Coverage.Lost = onPath - r.Coverage.Messages
	log := v.turn.wholeLog()
	r.Coverage.Messages, r.Coverage.Excluded = log, r.Coverage.Excluded+log-onPath
	return r, r.Coverage.Lost == 0 && log >= onPath, nil
}

// addSummaries puts the newest versions that came into use into the report, and the
// one that is prepared.
func (k *Keeper) addSummaries(ctx context.Context, scope core.Scope, id core.SessionID, r *core.ContextReport) error {
	page, err := k.Stores.Summaries.List(ctx, scope, id, core.PageQuery{Limit: 2 * reportedSummaries})
	if err != nil {
		return fmt.Errorf("list summaries: %w", err)
	}
	for _, s := range page.Items {
		switch {
		case s.State == core.SummaryPrepared:
			r.Prepared = &s
		case s.ActivatedAt != nil && len(r.Summaries) < reportedSummaries:
			r.Summaries = append(r.Summaries, s)
		}
	}
	return nil
}

// looked is a session's turn, the plan of its next prompt, and that prompt.
type looked struct {
	turn   Turn
	in     contextwindow.Input
	d      contextwindow.Decision
	prompt contextwindow.Prompt
}

// look plans the session's next prompt and carries nothing out.
func (k *Keeper) look(ctx context.Context, scope core.Scope, id core.SessionID) (looked, error) {
	t, err := k.turn(ctx, scope, id)
	if err != nil {
		return looked{}, err
	}
	if t, err = k.atWork(ctx, t); err != nil {
		return looked{}, err
	}
	return k.lookAt(ctx, t)
}

// lookAt is look for a turn that may be another than the session's.
func (k *Keeper) lookAt(ctx context.Context, t Turn) (looked, error) {
	in, err := k.input(ctx, t)
	if err != nil {
		return looked{}, err
	}
	in = k.seen(in, t, &effort{})
	d, _ := contextwindow.Plan(in)
	if t.Notes, err = k.notes(ctx, t, d.Loops); err != nil {
		return looked{}, err
	}
	prompt, err := k.assemble(ctx, t, d)
	return looked{t, in, d, prompt}, err
}

// used returns the prompt in the model's tokens.
func (v looked) used() int { return v.prompt.Sent.Used(v.d) }

// first says what happens before the prompt of the decision can be sent; empty =
// nothing does.
func first(d contextwindow.Decision) string {
	what := "message"
	if len(d.Run) > 0 {
		what = "model call"
	}
	switch {
	case d.Activate != nil:
		return fmt.Sprintf("the next %s first puts summary %d to use, which was prepared (%s)", what, d.Activate.Version, d.Activate.Trigger)
	case d.Summarize == nil:
		return ""
	case d.Summarize.Kind == core.SummaryRun:
		return fmt.Sprintf("the next %s first replaces the oldest %d messages of the tool loop by notes (%s)", what, d.Summarize.Messages, d.Summarize.Trigger)
	}
	return fmt.Sprintf("the next %s first summarizes the oldest %d messages (%s)", what, d.Summarize.Messages, d.Summarize.Trigger)
}

// Describe returns the report of a decision and of the prompt that it came to, without
// what only storage knows.
func (k *Keeper) Describe(t Turn, d contextwindow.Decision, sent contextwindow.Sent) core.ContextReport {
	info := t.Profile.Model.Info()
	e := k.Calibrator.Estimate(info.Name, t.Session.ID)
	_, from := k.window(t)
	r := core.ContextReport{
		Model: info.Name, Policy: t.Profile.Policy.Name,
		Window: d.Budget.Window, WindowFrom: string(from), Reserve: d.Budget.Reserve, Usable: d.Budget.Usable, Landing: d.Budget.Landing,
		Used: sent.Used(d), Planned: d.Total, Free: max(d.Budget.Usable-sent.Used(d), 0), MaxOutput: d.MaxOutput,
		Sections: sent.Sections(d), Triggers: d.Triggers, Coverage: coverage(t, d), Breaker: "closed",
		OpenUntil: t.Work.Breaker.Until, Failure: t.Work.Breaker.Reason, Summarizing: t.Work.Busy,
		Calibration: core.CalibrationView{Measured: e.Measured, Factor: e.Factor, Deviation: e.Deviation, Samples: e.Samples},
		Rungs:       []string{}, Reasons: append([]string{}, d.Reasons...), Summaries: []core.Summary{},
	}
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

// wholeLog returns how many messages the log has, on all branches: seq has no gaps.
func (t Turn) wholeLog() int {
	last := t.Session.LastSeq
	for _, list := range [][]core.Message{t.History, t.Run} {
		if n := len(list); n > 0 {
			last = max(last, list[n-1].Seq) // it may be younger than the session row
		}
	}
	return int(last)
}

// coverage counts where the messages are.
func coverage(t Turn, d contextwindow.Decision) core.Coverage {
	c := core.Coverage{Summarized: t.Session.SummarizedCount}
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
	c.Excluded = len(t.History) + len(t.Run) - len(d.History) - len(d.Run)
	c.Messages = c.Summarized + c.Compacted + c.Verbatim + c.Masked + c.Shortened + c.LeftOut + c.Excluded
	return c
}

// willTrigger reports whether one more user message and its answer would start a
// summarization: at the present rate for tokens, by count for messages (B5).
func willTrigger(in contextwindow.Input, d contextwindow.Decision) bool {
	perTurn := tokensPerTurn(d)
	const exchange = 2 // messages
	allowed := in.Policy.AutoSummarize && len(in.History)+exchange >= in.Policy.NeverBelow
	for _, s := range d.Triggers {
		will := false
		switch s.Name {
		case "share":
			will = s.Value+perTurn > s.Threshold
		case "unsummarized": // whatever else is set (R3)
			will = s.Value+exchange >= s.Threshold
		case "messages":
			will = allowed && s.Value+exchange >= s.Threshold
		case "tokens":
			will = allowed && s.Value+perTurn >= s.Threshold
		}
		if will {
			return true
		}
	}
	return false
}

// tokensPerTurn returns what a turn of the tail costs on average.
func tokensPerTurn(d contextwindow.Decision) int {
	turns, size := 0, 0
	for _, s := range d.History {
		if s.Role == core.RoleUser {
			turns++
		}
		size += s.Size
	}
	if turns == 0 {
		return 0
	}
	return size / turns
}

// Prompt returns the exact prompt that would be sent now; its note says so where
// the next message first has others summarized.
func (k *Keeper) Prompt(ctx context.Context, scope core.Scope, id core.SessionID) (core.PromptView, error) {
	v, err := k.look(ctx, scope, id)
	if err != nil {
		return core.PromptView{}, err
	}
	view := core.PromptView{
		Model: v.turn.Profile.Model.Info().Name, Tokens: v.prompt.Sent.Used(v.d), Note: first(v.d), MaxOutputTokens: v.d.MaxOutput,
		System: v.prompt.System, Messages: []core.PromptMessage{}, Tools: promptTools(v.turn.Profile.Tools),
	}
	sizes := v.prompt.Shown(v.d)
	for i, m := range v.prompt.Messages {
		view.Messages = append(view.Messages, core.PromptMessage{
			MessageID: m.ID, SummaryVersion: v.turn.Notes[m.Loop].Version, Placement: m.Place, Role: m.Role, Content: m.Content,
			ToolCalls: m.ToolCalls, ToolCallID: m.ToolCallID, Tokens: sizes[i], Images: imagesOf(m),
		})
	}
	return view, nil
}

// imagesOf returns the images that go with a message, without their bytes.
func imagesOf(m contextwindow.PromptMessage) []core.Part {
	var parts []core.Part
	for _, image := range m.Images {
		parts = append(parts, image.Part)
	}
	return parts
}

// promptTools returns the tool definitions as they are shown.
func promptTools(specs []llm.ToolSpec) []core.PromptTool {
	tools := make([]core.PromptTool, 0, len(specs))
	for _, s := range specs {
		tools = append(tools, core.PromptTool{Name: s.Name, Description: s.Description, Parameters: s.Parameters})
	}
	return tools
}
