package responses

import (
	"net/http"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

// keptItem is what is kept of an item beside the text and the tool calls of its message.
type keptItem struct {
	reasoning *item  // nil = it is the end of a text
	phase     string // of the text that ends there
	offset    int    // bytes of the text before it
	calls     int    // tool calls before it
}

// reasoningParts returns an item of reasoning as it is kept: one part for each text of its
// summary, and at least one.
func reasoningParts(came item, origin string) []core.Part {
	parts := make([]core.Part, 0, max(len(came.Summary), 1))
	for _, summary := range came.Summary {
		parts = append(parts, core.Part{Type: "reasoning", Text: summary.Text, Name: came.ID, Origin: origin})
	}
	if len(parts) == 0 {
		parts = append(parts, core.Part{Type: "reasoning", Name: came.ID, Origin: origin})
	}
	parts[len(parts)-1].Signature = came.EncryptedContent
	return parts
}

// keptItems returns what goes back with a message beside its text and its tool calls.
func (m *Model) keptItems(turn llm.Message) []keptItem {
	var out []keptItem
	summary := []part{}
	for _, p := range turn.Parts {
		kept := keptItem{offset: p.Offset, calls: p.Calls}
		switch {
		case p.Origin != m.options.Info.ThoughtOrigin:
			continue
		case p.Type == core.PartText:
			kept.phase = p.Name
			out = append(out, kept)
			continue
		case p.Type != core.PartReasoning:
			continue
		}
		if p.Text != "" {
			summary = append(summary, part{Text: p.Text, Type: "summary_text"})
		}
		if p.Signature == "" {
			continue
		}
		kept.reasoning = &item{Type: "reasoning", ID: p.Name, Summary: summary, EncryptedContent: p.Signature}
		out = append(out, kept)
		summary = []part{}
	}
	return out
}

// reasoningCount returns how many items of reasoning go back with the request.
func (m *Model) reasoningCount(req llm.Request) int {
	n := 0
	for _, turn := range req.Messages {
		for _, kept := range m.keptItems(turn) {
			if kept.reasoning != nil {
				n++
			}
		}
	}
	return n
}

// summarizes reports whether the request asks for summaries of the reasoning, which users see:
// where the name shows that the model reasons, until the API has refused it.
func (m *Model) summarizes(req llm.Request) bool {
	return m.reasons() && openai.HasFixedSampling(m.options.Model) && !req.Background && !m.withoutSummaries.Load()
}

// refusedSummaries reports whether the request was refused because it asks for summaries, and
// remembers it: organizations need a verification for them, and some models have none.
func (m *Model) refusedSummaries(req llm.Request, e *llm.Error) bool {
	if e == nil || e.Status != http.StatusBadRequest || !strings.HasPrefix(e.Code, "unsupported_") || !m.summarizes(req) {
		return false
	}
	if !strings.Contains(e.Message, "reasoning summaries") && !strings.Contains(e.Message, "reasoning.summary") {
		return false
	}
	m.withoutSummaries.Store(true)
	return true
}
