package langchain

import (
	"encoding/json"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// calls puts the pieces of tool calls together by their index, and copes with
// servers that leave it out or repeat it.
type calls struct {
	slots []*slot
}

// slot is one tool call; its place in calls.slots is the index that we give it.
type slot struct {
	index     *int // the provider's
	id        string
	name      string
	arguments []byte
}

// add returns the delta of the piece; nil if the piece says nothing.
func (c *calls) add(w callWire) *llm.ToolCallDelta {
	signature := w.ExtraContent.Google.ThoughtSignature
	if w.ID == "" && w.Function.Name == "" && w.Function.Arguments == "" && signature == "" {
		return nil
	}
	i := c.find(w)
	if i < 0 {
		i = len(c.slots)
		c.slots = append(c.slots, &slot{index: w.Index})
	}
	s := c.slots[i]
	d := &llm.ToolCallDelta{Index: i, Arguments: string(w.Function.Arguments), Signature: signature}
	if s.id == "" && w.ID != "" && !c.taken(w.ID) {
		s.id, d.ID = w.ID, w.ID
	}
	if s.name == "" {
		s.name, d.Name = w.Function.Name, w.Function.Name
	}
	s.arguments = append(s.arguments, d.Arguments...)
	return d
}

// find returns the slot that the piece belongs to; -1 = a new one.
func (c *calls) find(w callWire) int {
	for i := len(c.slots) - 1; i >= 0; i-- {
		s := c.slots[i]
		if w.Index != nil && s.index != nil {
			if *w.Index == *s.index {
				return c.sameIndex(i, w)
			}
			continue
		}
		if w.ID != "" && s.id == w.ID {
			return i
		}
	}
	if w.Index == nil && w.ID == "" && w.Function.Name == "" {
		return len(c.slots) - 1 // goes on with the last
	}
	return -1
}

// sameIndex tells a further piece of a call from another call under the same
// index: Gemini numbers all parallel calls 0, each whole in one piece.
func (c *calls) sameIndex(i int, w callWire) int {
	s := c.slots[i]
	if w.Function.Name == "" || s.name == "" {
		return i
	}
	if w.ID != "" && s.id != "" && w.ID != s.id {
		return -1
	}
	if w.ID == "" && strings.HasPrefix(string(w.Function.Arguments), "{") && json.Valid(s.arguments) {
		return -1
	}
	return i
}

func (c *calls) taken(id string) bool {
	for _, s := range c.slots {
		if s.id == id {
			return true
		}
	}
	return false
}

// unnamed gives the calls that came without an id one of ours, so that their
// results can name them.
func (c *calls) unnamed() []*llm.ToolCallDelta {
	var out []*llm.ToolCallDelta
	for i, s := range c.slots {
		if s.id == "" {
			s.id = newCallID()
			out = append(out, &llm.ToolCallDelta{Index: i, ID: s.id})
		}
	}
	return out
}

// newCallID returns an id that fits every provider (see maxCallID).
func newCallID() string {
	return "call_" + strings.ReplaceAll(string(core.NewID[core.MessageID]()), "-", "")
}
