package responses

import (
	sdk "github.com/openai/openai-go/v3/responses"

	"bobbin/app/core/llm"
)

// readDiagnosis returns what the API says about its cache; nil = nothing. It has reasons for a miss
// only, other outcomes are a word.
func readDiagnosis(d sdk.ResponsePromptCacheDiagnosticsUnion) *llm.CacheDiagnosis {
	switch {
	case d.Type == "":
		return nil
	case d.Type == "cache_miss" && d.Reason != "":
		return llm.NewCacheDiagnosis(true, d.Reason,
			llm.DiagnosisNumber{Name: "cache_missed_tokens", Value: d.CacheMissedTokens},
			llm.DiagnosisNumber{Name: "comparison_reusable_tokens", Value: d.ComparisonReusableTokens})
	default:
		return llm.NewCacheDiagnosis(d.Type == "cache_miss", d.Type)
	}
}
