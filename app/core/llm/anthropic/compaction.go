package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// compactionRequest returns the request without what only shapes an answer: the API refuses it
// beside a compaction.
func compactionRequest(req llm.Request) llm.Request {
	req.Stop, req.ResponseFormat, req.ToolChoice, req.ParallelToolCalls = nil, nil, core.ToolChoiceAuto, nil
	return req
}

// compactionOrder returns what asks for a compaction; nil = none is asked for.
func compactionOrder(req llm.Request) *sdk.BetaSummarizeCompactionParam {
	if !req.Compact {
		return nil
	}
	order := &sdk.BetaSummarizeCompactionParam{}
	if !isBlank(req.CompactInstructions) {
		order.Instructions = param.NewOpt(req.CompactInstructions)
	}
	return order
}

// compactionBlock is a compaction as it came, and as it goes back: the API refuses any change.
type compactionBlock struct {
	Type             string          `json:"type"`
	Content          *string         `json:"content,omitempty"`
	Signature        string          `json:"signature,omitempty"`
	EncryptedContent string          `json:"encrypted_content,omitempty"`
	ToolChanges      json.RawMessage `json:"tool_changes,omitempty"`
}

// toPart returns the block as it is kept. Its opaque members are the signature; where there are
// more than one, as a JSON object.
func (b compactionBlock) toPart(origin string) core.Part {
	part := core.Part{Signature: b.Signature, Origin: origin}
	if b.Content != nil {
		part.Text = *b.Content
	}
	if string(b.ToolChanges) == "null" {
		b.ToolChanges = nil
	}
	if b.EncryptedContent == "" && b.ToolChanges == nil {
		return part
	}
	b.Type, b.Content = "", nil
	if members, err := json.Marshal(b); err == nil { // it came as JSON
		part.Signature = string(members)
	}
	return part
}

// compactionMessage returns the message with which a prompt begins: the API's own answer, which
// stays apart from an answer that follows it.
func compactionMessage(p core.Part) (sdk.MessageParam, error) {
	b := compactionBlock{Signature: p.Signature}
	if strings.HasPrefix(p.Signature, "{") {
		b.Signature = ""
		if json.Unmarshal([]byte(p.Signature), &b) != nil {
			b = compactionBlock{Signature: p.Signature} // the API is to refuse it
		}
	}
	b.Type, b.Content = "compaction", &p.Text
	raw, err := json.Marshal(b)
	if err != nil {
		return sdk.MessageParam{}, err
	}
	block := param.Override[sdk.TextBlockParam](json.RawMessage(raw))
	return sdk.NewAssistantMessage(sdk.ContentBlockParamUnion{OfText: &block}), nil
}

// readCompaction reads a block of the answer, or a piece of one, which replaces what the block
// began with.
func (b *block) readCompaction(raw string) {
	var piece compactionBlock
	if json.Unmarshal([]byte(raw), &piece) != nil {
		return // without a content the compaction is empty
	}
	if piece.Content != nil {
		b.compaction.Content = piece.Content
	}
	if piece.Signature != "" {
		b.compaction.Signature = piece.Signature
	}
	if piece.EncryptedContent != "" {
		b.compaction.EncryptedContent = piece.EncryptedContent
	}
	if piece.ToolChanges != nil {
		b.compaction.ToolChanges = piece.ToolChanges
	}
}

// readCompactionDelta reads the event with a piece of the block.
func (b *block) readCompactionDelta(event string) {
	var e struct {
		Delta json.RawMessage `json:"delta"`
	}
	if json.Unmarshal([]byte(event), &e) == nil {
		b.readCompaction(string(e.Delta))
	}
}

// endCompaction ends an answer that is a compaction.
func (a *answer) endCompaction(last llm.Delta) error {
	stopped := ""
	if a.stop != "compaction" {
		stopped = string(a.stop)
	}
	return a.Compaction.End(last, stopped, a.EmitDelta)
}

// asCompactionRefusal returns the error of a request; where the API refused the compaction with
// which it begins, with that kind.
func asCompactionRefusal(req llm.Request, e *llm.Error) *llm.Error {
	given, _ := req.SplitCompaction()
	if given == nil || e == nil || e.Kind != llm.KindInvalid || e.Status != 0 && e.Status != http.StatusBadRequest || !namesCompaction(e) {
		return e
	}
	return e.RefusedCompaction()
}

// namesCompaction reports whether a refusal is about a block of compaction: not about the parameter
// of the name, nor about a thought behind the block.
func namesCompaction(e *llm.Error) bool {
	if slices.Contains([]string{"compaction_signature_invalid", "compaction_content_mismatch", "compaction_block_misplaced"}, e.Code) {
		return true
	}
	text := e.Message
	isParameter := strings.HasPrefix(text, "compaction:") || strings.HasPrefix(text, "compaction.")
	return strings.Contains(text, "compaction") && !isParameter && !strings.Contains(text, "thinking` block")
}
