package llm

import (
	"cmp"
	"math"
	"time"

	"bobbin/app/core"
)

// Priced reports whether the model's calls have a cost, if only none.
func (i Info) Priced() bool { return i.Cost(&core.Usage{}) != nil }

// NewCall returns the record of a call of the model that began at start, without whose it is. Estimated
// are the tokens of its prompt.
func (i Info) NewCall(purpose core.ModelPurpose, estimated int, res Response, err error, start time.Time) core.ModelCall {
	c := core.ModelCall{
		Purpose: purpose, Model: i.Name, Provider: i.Provider, Estimated: estimated, Cost: i.Cost(res.Usage),
		FinishReason: res.Finish, Duration: time.Since(start), CreatedAt: core.Now(),
	}
	if res.Usage != nil {
		c.Usage = *res.Usage
	}
	if err != nil {
		c.Error = string(KindUnknown)
	}
	if e := AsError(err); e != nil {
		c.Error = string(e.Kind)
	}
	return c
}

// Cost returns what the usage costs with the model's prices, in millionths of a US
// dollar; nil if no price is known, or no usage. What the demonstration and models of a local
// Ollama say costs nothing. A cache price that is not known is the input price:
// that is too much for what was read from a cache, and may be too little for what
// was written to it.
func (i Info) Cost(usage *core.Usage) *int64 {
	if i.InputPrice == 0 && i.OutputPrice == 0 {
		if i.Provider == ProviderDemo || i.Provider == ProviderOllama {
			return new(int64)
		}
		return nil
	}
	if usage == nil {
		return nil
	}
	plain := max(usage.InputTokens-usage.CacheReadTokens-usage.CacheWriteTokens, 0)
	// US dollars per million tokens are millionths of a dollar per token.
	return new(int64(math.Round(float64(plain)*i.InputPrice + float64(usage.OutputTokens)*i.OutputPrice +
		float64(usage.CacheReadTokens)*cmp.Or(i.CacheReadPrice, i.InputPrice) + float64(usage.CacheWriteTokens)*cmp.Or(i.CacheWritePrice, i.InputPrice))))
}
