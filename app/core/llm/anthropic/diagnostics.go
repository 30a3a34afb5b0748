package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"bobbin/app/core/llm"
)

// setDiagnostics asks what differs from the prompt of the previous answer. Without one the API
// keeps this prompt for the next comparison.
func setDiagnostics(p *sdk.MessageNewParams, req llm.Request) {
	switch {
	case !req.DiagnoseCache:
	case req.PreviousAnswer == "":
		p.Diagnostics.PreviousMessageID = param.Null[string]()
	default:
		p.Diagnostics.PreviousMessageID = param.NewOpt(req.PreviousAnswer)
	}
}

// cacheReport is what an answer says for the diagnostics of the cache.
type cacheReport struct {
	id        string              // of the answer
	diagnosis *llm.CacheDiagnosis // nil = nothing differs, or the comparison is not finished
}

// readCacheReport reads the report of a message, if the request asks for one.
func (a *answer) readCacheReport(message []byte) {
	var m struct {
		ID          string          `json:"id"`
		Diagnostics sdk.Diagnostics `json:"diagnostics"`
	}
	if !a.diagnoses || json.Unmarshal(message, &m) != nil { // it is a report only
		return
	}
	a.report.id = m.ID
	if reason := m.Diagnostics.CacheMissReason; reason.Type != "" {
		a.report.diagnosis = llm.NewCacheDiagnosis(strings.HasSuffix(reason.Type, "_changed"), reason.Type,
			llm.DiagnosisNumber{Name: "cache_missed_input_tokens", Value: reason.CacheMissedInputTokens})
	}
}
