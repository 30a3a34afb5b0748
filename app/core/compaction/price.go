package compaction

import (
	"cmp"
	"math"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// priceCompaction returns what a compaction of the snapshot's prompt would cost now, and after
// how many turns it pays off. The summary has its maximum size.
func (k *Compactor) priceCompaction(v snapshot) *core.CompactionPrice {
	in := v.in
	in.Force = true
	last, order, _ := simulateFit(in)
	price := core.CompactionPrice{Now: v.usedTokens(), CountedIn: core.CountedInTokens}
	switch {
	case last.Floor != nil:
		price.Reason = core.CompactionDoesNotFit
		return &price
	case order == nil || order.When != core.WhenNow:
		price.Reason = core.CompactionNothingToDo
		return &price
	}
	model := v.turn.Profile.Model.Info()
	price.After = last.Total
	price.CacheLost = v.heldTokens() - min(v.keptTokens(k.Counter), v.heldTokens())
	price.SummaryCost = new(int64)
	if writer := v.writer.model; writer != nil {
		info := writer.Info()
		estimate := k.Calibrator.Estimate(info.Name, v.turn.Session.ID)
		price.SummaryModel, price.SummaryInput, price.SummaryOutput = info.Name, estimate.Apply(order.Tokens), estimate.Apply(order.MaxTokens)
		price.SummaryCost = info.Cost(&core.Usage{InputTokens: price.SummaryInput, OutputTokens: price.SummaryOutput})
	}
	price = withPayoff(price, model)
	return &price
}

// heldTokens returns how much of the prompt a cache of the provider can hold: what the last
// model call sent, which is what precedes its answer.
func (v snapshot) heldTokens() int {
	sizes, behind := v.prompt.Shown(v.d), 0
	for i := len(sizes) - 1; i >= 0; i-- {
		behind += sizes[i]
		if m := v.prompt.Messages[i]; m.Role == core.RoleAssistant {
			return max(v.usedTokens()-behind, 0)
		}
	}
	return 0
}

// keptTokens returns how much of the prompt's beginning a compaction leaves as it is: the tools,
// and the system blocks before the summary.
func (v snapshot) keptTokens(count core.TextCounter) int {
	if v.d.Frozen != "" {
		return 0 // it brings the current system prompt
	}
	system := v.prompt.Sent.System
	if v.turn.Profile.Policy.SummaryRole != core.RoleUser {
		system = contextwindow.ListOverhead + count.Text(v.turn.Profile.SystemPrompt)
	}
	return v.d.Shown(v.prompt.Sent.Tools) + v.d.Shown(system)
}

// withPayoff completes the price with the turns after which the compaction has saved what it
// costs. Each turn sends the prompt once. In the first one, what a cache does not hold is
// written to it; later the whole prompt is read from it:
//
//	without: held·read + (now − held)·write + (turns − 1)·now·read
//	with:    summary + kept·read + (after − kept)·write + (turns − 1)·after·read
//
// Where a price is missing, or nothing costs anything, all tokens cost the same.
func withPayoff(price core.CompactionPrice, model llm.Info) core.CompactionPrice {
	saved := float64(price.Now - price.After)
	if saved <= 0 {
		price.Reason = core.CompactionNotSmaller
		return price
	}
	read, write, summary := 1.0, 1.0, float64(price.SummaryInput+price.SummaryOutput)
	if price.SummaryCost != nil && model.InputPrice > 0 {
		price.CountedIn = core.CountedInDollars
		read, write = cmp.Or(model.CacheReadPrice, model.InputPrice), cmp.Or(model.CacheWritePrice, model.InputPrice)
		summary = float64(*price.SummaryCost)
	}
	left := summary + float64(price.CacheLost)*(write-read) - saved*write // after the first turn
	turns := 1 + int(math.Ceil(max(left, 0)/(saved*read)))
	price.Turns = &turns
	return price
}
