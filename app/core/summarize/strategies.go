package summarize

import (
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Kind is a strategy that an agent's file can name (context.strategy).
type Kind struct {
	Name  string
	Model bool // it calls a model: without one Extractive replaces it
	New   func(Material) Strategy
	// Native: beside the summary of New, the provider of the conversation's model writes its own
	// (core.NativeSummary).
	Native bool
}

// Material is what a strategy is built from.
type Material struct {
	Count core.TextCounter
	// Model writes summaries, and Factor returns how many of its tokens one of ours
	// currently is; nil for kinds without a model. See NewLLM.
	Model  llm.Model
	Factor func() float64
}

// Kinds is the table of strategies: the only place where a strategy is registered.
func Kinds() []Kind {
	return []Kind{
		{Name: StrategyLLM, Model: true, New: func(m Material) Strategy { return m.newLLM() }},
		{Name: StrategyHybrid, Model: true, New: func(m Material) Strategy { return NewHybrid(m.newLLM()) }},
		{Name: StrategyNative, Model: true, Native: true, New: func(m Material) Strategy { return NewHybrid(m.newLLM()) }},
		{Name: StrategyExtractive, New: func(m Material) Strategy { return NewExtractive(m.Count) }},
	}
}

func (m Material) newLLM() *LLM { return NewLLM(m.Model, m.Count, m.Factor) }

// KindOf returns the named strategy; false = there is none.
func KindOf(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}
