package llm

import (
	"fmt"
	"strings"

	"bobbin/app/core"
)

// CacheDiagnosis is what a provider says about the prompt of a request with DiagnoseCache, compared
// with that of the previous answer.
type CacheDiagnosis struct {
	Missed bool   // the prompts differ, so that its cache could not have all of the previous one
	Words  string // its own, at most maxDiagnosis bytes
}

// Sizes of what a provider says.
const (
	maxDiagnosis = 200
	maxAnswerID  = 100
)

// NewCacheDiagnosis returns a diagnosis in the provider's words: what it found, and the numbers
// that come with it by the provider's names. Numbers of 0 are left out.
func NewCacheDiagnosis(missed bool, word string, numbers ...DiagnosisNumber) *CacheDiagnosis {
	var details []string
	for _, n := range numbers {
		if n.Value > 0 {
			details = append(details, fmt.Sprintf("%s: %d", n.Name, n.Value))
		}
	}
	if len(details) > 0 {
		word += " (" + strings.Join(details, ", ") + ")"
	}
	word = core.StripControls(core.CleanText(word))
	return &CacheDiagnosis{Missed: missed, Words: core.Clip(strings.Join(strings.Fields(word), " "), maxDiagnosis)}
}

// DiagnosisNumber is a number of a diagnosis.
type DiagnosisNumber struct {
	Name  string
	Value int64
}

// storableID returns the id of an answer, or nothing for one that is no id: it is stored, and goes
// back to the provider.
func storableID(id string) string {
	other := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("_-.:", r)
	}
	if len(id) > maxAnswerID || strings.ContainsFunc(id, other) {
		return ""
	}
	return id
}

// WithAnswer returns the marks with the provider's id of the answer to their prompt.
func (p PromptMarks) WithAnswer(id string) PromptMarks {
	p.Answer = storableID(id)
	return p
}

// WithDiagnosis returns the request as it is sent after the prompt with the marks: where the
// model's entry says so, the provider compares the prompts. It gets only the id of an answer of
// that model and account.
func (r Request) WithDiagnosis(info Info, before PromptMarks) Request {
	if !info.CacheDiagnostics {
		return r
	}
	r.DiagnoseCache = true
	if before.Model == hashOfModel(info) {
		r.PreviousAnswer = before.Answer
	}
	return r
}
