package llm_test

import (
	"strings"
	"testing"

	"bobbin/app/core/llm"
)

// The id of an answer goes back only to the model and account that gave it, and only where the
// model's entry says so.
func TestPreviousAnswer(t *testing.T) {
	t.Parallel()
	house := llm.Info{Name: "house", Account: "a", CacheDiagnostics: true}
	for name, tt := range map[string]struct {
		id       string
		info     llm.Info
		diagnose bool
		want     string
	}{
		"same model":      {"msg_1", house, true, "msg_1"},
		"not configured":  {"msg_1", llm.Info{Name: "house", Account: "a"}, false, ""},
		"another model":   {"msg_1", llm.Info{Name: "other", Account: "a", CacheDiagnostics: true}, true, ""},
		"another account": {"msg_1", llm.Info{Name: "house", Account: "b", CacheDiagnostics: true}, true, ""},
		"no id":           {"", house, true, ""},
		"no such id":      {"msg 1\x00", house, true, ""},
		"100 bytes":       {strings.Repeat("m", 100), house, true, strings.Repeat("m", 100)},
		"101 bytes":       {strings.Repeat("m", 101), house, true, ""},
	} {
		stored := llm.MarkPrompt(house, requestOf(3)).WithAnswer(tt.id).Encode()
		got := requestOf(3).WithDiagnosis(tt.info, llm.DecodeMarks(stored))
		if got.DiagnoseCache != tt.diagnose || got.PreviousAnswer != tt.want {
			t.Errorf("%s: got %v, %q, want %v, %q", name, got.DiagnoseCache, got.PreviousAnswer, tt.diagnose, tt.want)
		}
	}
}
