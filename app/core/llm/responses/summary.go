package responses

import (
	"net/http"
	"strings"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
)

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
