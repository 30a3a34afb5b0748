package responses_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
)

// Only a request that asks for diagnostics after an answer names that answer.
func TestDiagnosticsAreRequested(t *testing.T) {
	t.Parallel()
	plain := sent(t, responses.Options{}, ask("hi")).raw
	for name, tt := range map[string]struct {
		diagnose bool
		previous string
		want     string
	}{
		"not asked":    {false, "resp_1", ""},
		"first answer": {true, "", ""},
		"asked":        {true, "resp_1", `"prompt_cache_options":{"comparison_response_id":"resp_1"},`},
	} {
		req := ask("hi")
		req.DiagnoseCache, req.PreviousAnswer = tt.diagnose, tt.previous
		got := sent(t, responses.Options{}, req).raw
		if rest := strings.Replace(got, tt.want, "", 1); rest != plain || !strings.Contains(got, tt.want) {
			t.Errorf("%s: got %s, want %s with %s", name, got, plain, tt.want)
		}
	}
}

// What the API says comes with the end of the answer.
func TestDiagnosticsAreRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		diagnostics string
		want        *llm.CacheDiagnosis
	}{
		"a miss": {`{"type":"cache_miss","reason":"input_changed","cache_missed_tokens":90,"comparison_reusable_tokens":400}`,
			&llm.CacheDiagnosis{Missed: true, Words: "input_changed (cache_missed_tokens: 90, comparison_reusable_tokens: 400)"}},
		"no reason":    {`{"type":"cache_miss"}`, &llm.CacheDiagnosis{Missed: true, Words: "cache_miss"}},
		"a hit":        {`{"type":"cache_hit"}`, &llm.CacheDiagnosis{Words: "cache_hit"}},
		"no record":    {`{"type":"comparison_response_not_found"}`, &llm.CacheDiagnosis{Words: "comparison_response_not_found"}},
		"nothing":      {`null`, nil},
		"another form": {`"hit"`, nil},
	} {
		response := `{"id":"resp_2","object":"response","status":"completed","prompt_cache_diagnostics":` + tt.diagnostics +
			`,"output":[{"type":"message","content":[{"type":"output_text","text":"ok"}]}]}`
		m := open(t, serve(t, stream(`{"type":"response.completed","response":`+response+`}`), refuse(200, response), refuse(200, response)), responses.Options{})
		req := ask("hi")
		for _, asks := range []bool{true, true, false} { // streamed, whole, whole
			req.DiagnoseCache = asks
			res, err := collect(t, m, req)
			if err != nil || res.Text != "ok" || (res.ID == "resp_2") != asks {
				t.Errorf("%s: got %+v, %v", name, res, err)
			}
			want := tt.want
			if !asks {
				want = nil
			}
			if diff := cmp.Diff(want, res.Diagnosis); diff != "" {
				t.Errorf("%s: got another diagnosis (-want +got):\n%s", name, diff)
			}
		}
	}
}
