package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// orderCompaction returns what asks for a compaction; nil = none is asked for.
func orderCompaction(req llm.Request) *compactionOrder {
	switch {
	case !req.Compact:
		return nil
	case isBlank(req.CompactInstructions):
		return &compactionOrder{Type: "summarize"}
	}
	return &compactionOrder{Type: "summarize", Instructions: req.CompactInstructions}
}

// compactionPart returns a compaction as it is kept. Its opaque members are the signature; where there
// are more than one, as a JSON object.
func compactionPart(text string, members opaque, origin string) core.Part {
	part := core.Part{Text: text, Signature: members.Signature, Origin: origin}
	if string(members.ToolChanges) == "null" {
		members.ToolChanges = nil
	}
	if members.EncryptedContent == "" && members.ToolChanges == nil {
		return part
	}
	if raw, err := json.Marshal(members); err == nil { // it came as JSON
		part.Signature = string(raw)
	}
	return part
}

// compactionMessage returns the message with which a prompt begins: the API's own answer, as it came, which
// stays apart from an answer that follows it.
func compactionMessage(p core.Part) message {
	members := opaque{}
	if !strings.HasPrefix(p.Signature, "{") || json.Unmarshal([]byte(p.Signature), &members) != nil {
		members = opaque{Signature: p.Signature} // the API is to refuse it if it is none
	}
	return message{"assistant", []block{{Type: "compaction", opaque: members, Content: p.Text}}}
}

// endCompaction emits the compaction and the last delta, or the usage and the error of an answer that
// is none.
func (a *answer) endCompaction(last llm.Delta) error {
	first := append(a.compactions, core.Part{})[0]
	fault := ""
	switch {
	case max(len(first.Text), len(first.Signature)) > llm.MaxCompaction:
		fault = fmt.Sprintf("the compaction is larger than %d MiB", llm.MaxCompaction>>20)
	case len(a.compactions) > 1:
		fault = fmt.Sprintf("the provider returned %d compactions instead of one", len(a.compactions))
	case a.stop != "compaction":
		fault = fmt.Sprintf("the provider returned no compaction: it stopped with %q", a.stop)
	case first.Text == "":
		fault = "the provider returned an empty compaction"
	}
	if fault != "" {
		if err := a.EmitDelta(llm.Delta{Usage: last.Usage}); err != nil {
			return err
		}
		return &llm.Error{Kind: llm.KindInvalid, Provider: a.provider, Message: fault}
	}
	first.Type, last.Finish = core.PartCompaction, core.FinishStop
	if err := a.EmitDelta(llm.Delta{Compaction: &first}); err != nil {
		return err
	}
	return a.EmitDelta(last)
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
