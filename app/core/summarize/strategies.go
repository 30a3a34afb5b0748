package summarize

import "bobbin/app/core/llm"

// Kind is a strategy that an agent's file can name (context.strategy).
type Kind struct {
	Name  string
	Model bool // it asks a model: without one Extractive takes its place
	New   func(Material) Strategy
}

// Material is what a strategy may be made of.
type Material struct {
	Count counter
	// Model writes summaries, and Factor says how many of its tokens one of ours is at
	// present; nil for kinds without a model. See NewLLM.
	Model  llm.Model
	Factor func() float64
}

// Kinds is the table of strategies: the one place where a strategy is registered. What
// reads agents' files and what makes summaries looks here.
func Kinds() []Kind {
	return []Kind{
		{Name: StrategyLLM, Model: true, New: func(m Material) Strategy { return m.llm() }},
		{Name: StrategyHybrid, Model: true, New: func(m Material) Strategy { return NewHybrid(m.llm()) }},
		{Name: StrategyExtractive, New: func(m Material) Strategy { return NewExtractive(m.Count) }},
	}
}

func (m Material) llm() *LLM { return NewLLM(m.Model, m.Count, m.Factor) }

// KindOf returns the named strategy; false = there is none.
func KindOf(name string) (Kind, bool) {
	for _, k := range Kinds() {
		if k.Name == name {
			return k, true
		}
	}
	return Kind{}, false
}

// Names returns the names of all strategies in the order of the table.
func Names() []string {
	var names []string
	for _, k := range Kinds() {
		names = append(names, k.Name)
	}
	return names
}
