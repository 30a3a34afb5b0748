package providerhttp

import (
	"fmt"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Compaction reads the compaction that an answer to llm.Request.Compact is. A nil one reads an
// answer of another kind.
type Compaction struct {
	Provider string // for errors

	count   int       // of compactions so far
	part    core.Part // the first one
	isLarge bool
}

// NewCompaction returns what reads the answer to the request; nil = no compaction is asked for.
func NewCompaction(provider string, req llm.Request) *Compaction {
	if !req.Compact {
		return nil
	}
	return &Compaction{Provider: provider}
}

// Add adds a compaction of the answer.
func (c *Compaction) Add(p core.Part) {
	if c == nil {
		return
	}
	if c.count++; c.count > 1 {
		return
	}
	if len(p.Text) > llm.MaxCompaction || len(p.Signature) > llm.MaxCompaction {
		c.isLarge = true
		return
	}
	c.part = p
}

// Only returns what of a delta the answer has.
func (c *Compaction) Only(d llm.Delta) llm.Delta {
	if c != nil {
		d.Text, d.Reasoning, d.Part, d.ToolCall = "", "", nil, nil
	}
	return d
}

// End emits the end of the answer: the compaction and the last delta, or the usage and the error of
// an answer that is none. Stopped is the reason for which it ended early; empty = it did not.
func (c *Compaction) End(last llm.Delta, stopped string, emit func(llm.Delta) error) error {
	fault := ""
	switch {
	case c.isLarge:
		fault = fmt.Sprintf("the compaction is larger than %d MiB", llm.MaxCompaction>>20)
	case c.count > 1:
		fault = fmt.Sprintf("the provider returned %d compactions instead of one", c.count)
	case stopped != "":
		fault = fmt.Sprintf("the provider returned no compaction: it stopped with %q", stopped)
	case c.part.Text == "":
		fault = "the provider returned an empty compaction"
	}
	if fault != "" {
		if err := emit(llm.Delta{Usage: last.Usage}); err != nil {
			return err
		}
		return c.fault(fault)
	}
	c.part.Type = core.PartCompaction
	if err := emit(llm.Delta{Compaction: &c.part}); err != nil {
		return err
	}
	last.Finish = core.FinishStop
	return emit(last)
}

func (c *Compaction) fault(message string) *llm.Error {
	return &llm.Error{Kind: llm.KindInvalid, Provider: c.Provider, Message: message}
}
