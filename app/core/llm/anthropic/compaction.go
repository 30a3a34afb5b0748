package anthropic

import (
	"net/http"
	"slices"
	"strings"

	"bobbin/app/core/llm"
)

// asCompactionRefusal returns the error of a request; where the API refused the compaction with
// which it begins, with that kind: the block, not the parameter of the name, nor a thought behind
// the block.
func asCompactionRefusal(req llm.Request, e *llm.Error) *llm.Error {
	given, _ := req.SplitCompaction()
	if given == nil || e == nil || e.Kind != llm.KindInvalid || e.Status != 0 && e.Status != http.StatusBadRequest {
		return e
	}
	text := e.Message
	isParameter := strings.HasPrefix(text, "compaction:") || strings.HasPrefix(text, "compaction.")
	if slices.Contains([]string{"compaction_signature_invalid", "compaction_content_mismatch", "compaction_block_misplaced"}, e.Code) ||
		strings.Contains(text, "compaction") && !isParameter && !strings.Contains(text, "thinking` block") {
		return e.WithKind(llm.KindCompactionRefused)
	}
	return e
}
