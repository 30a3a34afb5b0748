package anthropic

import "bobbin/app/core/llm"

// generation is which Claude a model is, by its name; zero = the name does not say.
type generation struct{ llm.Version }

// decidesThinking: the model decides how much it thinks; later ones refuse a
// budget.
func (g generation) decidesThinking() bool { return g.IsSince(4, 6) }

// fixedSampling: the model refuses a temperature.
func (g generation) fixedSampling() bool { return g.IsSince(4, 7) }

// compacts: the model writes compactions on demand (Claude 4.6 to 5.5, by the page
// compaction-on-demand).
func (g generation) compacts() bool { return g.IsSince(4, 6) && !g.IsSince(5, 6) }
