package responses

import (
	"net/http"
	"strings"

	"github.com/openai/openai-go/v3/packages/param"
	sdk "github.com/openai/openai-go/v3/responses"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// reasoningItem is an item of reasoning and its place in its message.
type reasoningItem struct {
	sdk.ResponseReasoningItemParam

	offset int // bytes of the text before it
	calls  int // tool calls before it
}

// reasoningOrigin is whose reasoning this model takes back.
func (m *Model) reasoningOrigin() string { return m.options.Info.ThoughtOrigin }

// reasoningParts returns an item of reasoning as it is kept: one part for each text of its
// summary, and at least one.
func reasoningParts(item sdk.ResponseOutputItemUnion, origin string) []core.Part {
	parts := make([]core.Part, 0, max(len(item.Summary), 1))
	for _, summary := range item.Summary {
		parts = append(parts, core.Part{Type: "reasoning", Text: summary.Text, Name: item.ID, Origin: origin})
	}
	if len(parts) == 0 {
		parts = append(parts, core.Part{Type: "reasoning", Name: item.ID, Origin: origin})
	}
	parts[len(parts)-1].Signature = item.EncryptedContent
	return parts
}

// reasoningItems returns the items of reasoning that go back with a message.
func (m *Model) reasoningItems(turn llm.Message) []reasoningItem {
	var out []reasoningItem
	summary := []sdk.ResponseReasoningItemSummaryParam{} // the API wants a list, even if it is empty
	for _, p := range turn.Parts {
		if p.Type != "reasoning" || p.Origin != m.reasoningOrigin() {
			continue
		}
		if p.Text != "" {
			summary = append(summary, sdk.ResponseReasoningItemSummaryParam{Text: p.Text})
		}
		if p.Signature == "" {
			continue
		}
		out = append(out, reasoningItem{offset: p.Offset, calls: p.Calls, ResponseReasoningItemParam: sdk.ResponseReasoningItemParam{
			ID: p.Name, Summary: summary, EncryptedContent: param.NewOpt(p.Signature),
		}})
		summary = []sdk.ResponseReasoningItemSummaryParam{}
	}
	return out
}

// refusedReasoning reports whether the request was refused for the reasoning in it, which the
// API cannot decrypt. Such a conversation could never go on.
func (m *Model) refusedReasoning(req llm.Request, e *llm.Error) bool {
	if e == nil || e.Kind != llm.KindInvalid || e.Status != http.StatusBadRequest {
		return false
	}
	if e.Code != "invalid_encrypted_content" && !strings.Contains(e.Message, "encrypted content") {
		return false
	}
	return m.reasoningCount(req) > 0
}

// reasoningCount returns how many items of reasoning go back with the request.
func (m *Model) reasoningCount(req llm.Request) int {
	n := 0
	for _, turn := range req.Messages {
		n += len(m.reasoningItems(turn))
	}
	return n
}
