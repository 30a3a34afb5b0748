package compaction

import (
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
	"bobbin/app/core/summarize"
	"bobbin/app/core/tokens"
)

// With the strategy native, the provider of the conversation's model writes a compaction of its own
// beside each version of the summary (core.NativeSummary). Both are made at the same time
// and stored in one transaction: no version is without its plain words. Which of them stands in a
// prompt is decided when the prompt is made: the native one where the model and its account are those
// that it was made with, the prompt can begin with the system prompt and the tools of its making
// (contextwindow.Setup), and the provider has not refused it.

// maxNativeBytes bounds what is stored of a provider's compaction: it is sent with every prompt.
const maxNativeBytes = 256 << 10

// maxNativePrefixes bounds how many summaries a thought outlives: each of them has one more form of
// what precedes it.
const maxNativePrefixes = 8

// isNative reports whether the turn's policy asks for native summaries.
func isNative(t Turn) bool { return summarize.KindOf(t.Profile.Policy.Strategy).Native }

// nativeOf returns the native summary that stands in the turn's prompts; nil = the words of the version do.
func (k *Compactor) nativeOf(t Turn) *core.NativeSummary {
	if n := t.Session.NativeSummary; k.whyPlain(t, n) == "" {
		return n
	}
	return nil
}

// whyPlain returns why prompts of the turn do not have the native summary; empty = they do.
func (k *Compactor) whyPlain(t Turn, n *core.NativeSummary) string {
	info := t.Profile.Model.Info()
	switch {
	case !isNative(t):
		return "the agent's strategy is another"
	case !info.Compacts:
		return "the provider of this model writes no compactions"
	case n == nil:
		return "the provider wrote none for this version"
	case n.Refused != "":
		return n.Refused
	case t.RefusedNative:
		return "the provider has just refused another"
	case n.Origin != info.ThoughtOrigin || n.Account != info.Account:
		return "another model or another account wrote it"
	case n.Setup != k.setupOf(t) && !k.keepsSetup(t, n):
		return "it was written with another system prompt or other tools"
	}
	return ""
}

// keepsSetup reports whether prompts of the turn can begin with the setup of the native summary.
func (k *Compactor) keepsSetup(t Turn, n *core.NativeSummary) bool {
	current, ok := k.promptSetup(t)
	return ok && t.Setups.CanChange(n.Frozen, current.Hash, k.modelOf(t).ToolChanges)
}

// frozenFor returns the setup with which prompts with the native summary begin; empty = they keep none.
func (k *Compactor) frozenFor(t Turn, n *core.NativeSummary) string {
	if current, ok := k.promptSetup(t); ok && n.Setup == k.setupOf(t) {
		return current.Hash
	}
	return n.Frozen
}

// versionOf returns the version that the summary is in the turn's prompts: the native one where they have it.
func (k *Compactor) versionOf(t Turn, s core.Summary) core.SummaryVersion {
	v := s.AsVersion()
	if n := k.nativeOf(t.withNative(s.Native)); n != nil {
		v.Tokens, v.KeepsThoughts, v.Frozen = n.Tokens, len(n.Prefixes) > 0, k.frozenFor(t, n)
	}
	return v
}

// setupOf returns a hash of the turn's model, system prompt and tools.
func (k *Compactor) setupOf(t Turn) string {
	p := t.Profile
	return llm.NewPrefix(p.Model.Info(), []string{p.SystemPrompt, p.ToolUsage}, p.Tools, nil, "").String()
}

// withNative returns the turn with another native summary.
func (t Turn) withNative(n *core.NativeSummary) Turn {
	t.Session.NativeSummary = n
	return t
}

// startNative starts the provider's compaction of what the order covers. The function that it
// returns waits for it, unless the plain summary failed: then there is nothing to put it beside, also
// not beside the one that is made in its place.
func (k *Compactor) startNative(ctx context.Context, t Turn, m draft, req summarize.Request) func(failed error) (*core.NativeSummary, []core.ModelCall) {
	o := m.order
	if o.Kind == core.SummaryRun || !isNative(t) || t.RefusedNative || m.failure != "" || !t.Profile.Model.Info().Compacts || k.checkBudget(ctx, t, t.Profile.Model) != nil {
		return func(error) (*core.NativeSummary, []core.ModelCall) { return nil, nil }
	}
	ctx, cancel := context.WithTimeout(ctx, k.BackgroundTime)
	done := make(chan struct{})
	var n *core.NativeSummary
	var calls []core.ModelCall
	go func() {
		defer close(done)
		var err error
		if n, calls, err = k.writeNative(ctx, t, o, req); errors.Is(err, context.Canceled) {
			return
		}
		outcome := NativeMade
		if err != nil {
			outcome = NativeFailed
			if len(calls) > 0 && calls[0].Error == "" {
				outcome = NativeRejected
			}
			k.Logger.WarnContext(ctx, "no native summary", "session_id", t.Session.ID, "model", t.Profile.Model.Info().Name, "err", err)
		}
		k.Observer.CountOf(t.Profile.Model.Info().Name, core.CountNative, 1, outcome)
	}()
	return func(failed error) (*core.NativeSummary, []core.ModelCall) {
		if failed != nil {
			cancel()
		}
		<-done
		cancel()
		return n, calls
	}
}

// errNativeTooLarge says why a provider's compaction is not used.
var errNativeTooLarge = errors.New("the provider's compaction is too large")

// writeNative asks the provider for a compaction of the messages that the order covers, behind
// exactly the prompt that they were sent in.
func (k *Compactor) writeNative(ctx context.Context, t Turn, o contextwindow.Order, material summarize.Request) (*core.NativeSummary, []core.ModelCall, error) {
	whole, err := k.planInput(t)
	if err != nil {
		return nil, nil, err
	}
	t, d, isBound, err := k.planCovered(ctx, t, contextwindow.PlanAsIs(whole), o)
	if err != nil {
		return nil, nil, err
	}
	if d.Total > d.Budget.Usable {
		return nil, nil, fmt.Errorf("%d tokens do not fit one call of the model, which takes %d", d.Total, d.Budget.Usable)
	}
	prompt, err := k.assemble(ctx, t, d)
	if err != nil {
		return nil, nil, err
	}
	res, call, err := k.requestCompaction(ctx, t, d, prompt)
	calls := []core.ModelCall{call}
	if err != nil {
		return nil, calls, err
	}
	info := t.Profile.Model.Info()
	part := *res.Compaction
	n := &core.NativeSummary{
		Part: part, Model: info.Name, Text: part.Text, Account: info.Account, Origin: info.ThoughtOrigin, Setup: k.setupOf(t),
		Start: prompt.Start, Prefixes: prompt.Ends[:min(len(prompt.Ends), maxNativePrefixes)],
	}
	if setup, ok := k.promptSetup(t); ok {
		n.Frozen = setup.Hash
	}
	if res.Usage != nil {
		n.Usage, n.Cost = *res.Usage, info.Cost(res.Usage)
	}
	n.Tokens = tokens.Prompted(k.Counter.Text, llm.Message{Role: core.RoleUser, Parts: []core.Part{part}})
	if !isBound {
		n.Prefixes = nil
	}
	if len(n.Part.Text)+len(n.Part.Signature) > maxNativeBytes {
		return nil, calls, errNativeTooLarge
	}
	if core.CleanText(n.Part.Signature) != n.Part.Signature { // it must go back as it came
		return nil, calls, errors.New("the provider's compaction has characters that cannot be stored")
	}
	earlier := ""
	if before := k.nativeOf(t); before != nil {
		earlier = before.Text
	}
	if err := summarize.CheckNative(ctx, k.Counter, material, earlier, n.Text); err != nil {
		return nil, calls, err
	}
	active := core.SummaryVersion{Version: whole.Summary.Version + 1, ThroughSeq: o.ThroughSeq, Tokens: n.Tokens, MadeFor: o.MadeFor, KeepsThoughts: isBound, Frozen: n.Frozen}
	if after := newPlan(whole.Activated(active)); n.Tokens >= o.Tokens || after.d.Summarize != nil || after.d.Floor != nil {
		return nil, calls, errNativeTooLarge
	}
	return n, calls, nil
}

// planCovered returns the turn and the prompt of a compaction of what the order covers. It begins with
// the setup of the whole prompt, so that changes of the setup behind the messages stay where they are.
// A change among the messages would be gone with them: then the prompt is not bound to the one in which
// they were sent, but has the current setup, the words of the summary, and no thoughts.
func (k *Compactor) planCovered(ctx context.Context, t Turn, whole contextwindow.Decision, o contextwindow.Order) (covered Turn, d contextwindow.Decision, isBound bool, err error) {
	t.History, t.Run, t.Recalled = messagesThrough(core.WithoutRefused(t.History, core.FinishContentFilter, core.FinishRefused), o.ThroughSeq), nil, nil
	t.Profile.Policy.SummaryRole = core.RoleUser // the system prompt stays the same when the compaction takes the summary's place
	covered = t
	if s, known := t.Setups[whole.Frozen]; known {
		covered.Profile.SystemPrompt, covered.Profile.ToolUsage, covered.Profile.Tools = s.SystemPrompt, s.ToolUsage, s.Specs
	}
	if d, err = k.planFrozen(ctx, covered); err != nil || d.Frozen == "" && !d.ChangesSetup() {
		return covered, d, true, err
	}
	state, err := contextwindow.DecodeState(t.Session.PromptState)
	if err != nil {
		return t, d, false, err
	}
	covered = t.withNative(nil)
	covered.Session.PromptState = state.WithoutThoughts(o.ThroughSeq).Encode()
	d, err = k.planFrozen(ctx, covered)
	return covered, d, false, err
}

// planFrozen plans the turn's prompt so that it begins with the turn's own setup.
func (k *Compactor) planFrozen(ctx context.Context, t Turn) (contextwindow.Decision, error) {
	in, err := k.planInput(t)
	if setup, ok := k.promptSetup(t); ok {
		in.Summary.Frozen = setup.Hash
	}
	return contextwindow.PlanAsIs(in), err
}

// requestCompaction makes the call, and its record.
func (k *Compactor) requestCompaction(ctx context.Context, t Turn, d contextwindow.Decision, prompt contextwindow.Prompt) (llm.Response, core.ModelCall, error) {
	info := t.Profile.Model.Info()
	parameters := t.Profile.Agent.ModelParameters
	parameters.ResponseFormat, parameters.Stop = nil, nil
	req := llm.Request{
		System: prompt.System, Messages: prompt.LLM(), Tools: t.Profile.Tools, MaxOutputTokens: d.MaxOutput,
		ChecksPrefix: k.modelOf(t).Prefix.Binds(), Compact: true, Background: true,
	}.WithParameters(parameters, info)
	start := time.Now()
	res, err := llm.Collect(t.Profile.Model.Stream(ctx, req), nil)
	if err == nil && (res.Compaction == nil || res.Compaction.Text == "") {
		err = &llm.Error{Kind: llm.KindEmpty, Provider: info.Provider, Message: "the provider returned no compaction"}
	}
	return res, info.NewCall(core.PurposeSummary, prompt.Sent.Total(), res, err, start), err
}

// RefuseNative records that the provider did not take back the native summary in the turn's prompt:
// the words of its version stand in the next ones.
func (k *Compactor) RefuseNative(ctx context.Context, t Turn) (Turn, error) {
	for attempt := 0; k.nativeOf(t) != nil; attempt++ {
		k.Logger.WarnContext(ctx, "native summary refused", "session_id", t.Session.ID, "version", t.Session.SummaryVersion,
			"model", t.Profile.Model.Info().Name)
		if attempt == 0 {
			k.Observer.CountOf(t.Profile.Model.Info().Name, core.CountNative, 1, NativeRefused)
		}
		err := k.applyChange(ctx, &t, core.ContextChange{Refused: "the provider did not take it back"})
		if errors.Is(err, core.ErrStale) && attempt < maxReloads {
			t, err = k.reloadTurn(ctx, t)
		}
		if err != nil {
			return t, fmt.Errorf("record a native summary that was refused: %w", err)
		}
	}
	t.RefusedNative = true
	return t, nil
}
