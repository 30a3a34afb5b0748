package anthropic

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

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

// asCompactionRefusal returns the error of a request; where the API refused the compaction with
// which it begins, with that kind.
func asCompactionRefusal(req llm.Request, e *llm.Error) *llm.Error {
	given, _ := req.SplitCompaction()
	if given == nil || e == nil || e.Kind != llm.KindInvalid || e.Status != 0 && e.Status != http.StatusBadRequest || !namesCompaction(e) {
		return e
	}
	return e.WithKind(llm.KindCompactionRefused)
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
