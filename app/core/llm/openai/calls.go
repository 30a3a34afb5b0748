package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"bobbin/app/core/llm"
)

// calls joins the pieces of tool calls by their index, also for servers that leave it out
// or repeat it.
type calls []*slot

// slot is one tool call; its place among the calls is the index that we give it.
type slot struct {
	index     *int // the provider's
	id        string
	name      string
	arguments []byte
}

// addPiece returns the delta of the piece; nil if the piece is empty.
func (c *calls) addPiece(w callWire) *llm.ToolCallDelta {
	signature := w.ExtraContent.Google.ThoughtSignature
	if w.ID == "" && w.Function.Name == "" && w.Function.Arguments == "" && signature == "" {
		return nil
	}
	i := c.findSlot(w)
	if i < 0 {
		i = len(*c)
		*c = append(*c, &slot{index: w.Index})
	}
	s := (*c)[i]
	d := &llm.ToolCallDelta{Index: i, Arguments: string(w.Function.Arguments), Signature: signature}
	if s.id == "" && w.ID != "" && !slices.ContainsFunc(*c, func(s *slot) bool { return s.id == w.ID }) {
		s.id, d.ID = w.ID, w.ID
	}
	if s.name == "" {
		s.name, d.Name = w.Function.Name, w.Function.Name
	}
	s.arguments = append(s.arguments, d.Arguments...)
	return d
}

// findSlot returns the slot that the piece belongs to; -1 = a new one.
func (c calls) findSlot(w callWire) int {
	for i := len(c) - 1; i >= 0; i-- {
		s := c[i]
		if w.Index != nil && s.index != nil {
			if *w.Index != *s.index {
				continue
			}
			// Another call may have the same index: Gemini numbers all parallel calls 0, each whole in one piece.
			isNew := w.ID != "" && s.id != "" && w.ID != s.id ||
				w.ID == "" && strings.HasPrefix(string(w.Function.Arguments), "{") && json.Valid(s.arguments)
			if isNew && w.Function.Name != "" && s.name != "" {
				return -1
			}
			return i
		}
		if w.ID != "" && s.id == w.ID {
			return i
		}
	}
	if w.Index == nil && w.ID == "" && w.Function.Name == "" {
		return len(c) - 1 // continues the last
	}
	return -1
}
