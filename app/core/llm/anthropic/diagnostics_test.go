package anthropic_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
)

// Only a request that asks for diagnostics has them: first without, then with a previous answer.
func TestDiagnosticsAreRequested(t *testing.T) {
	t.Parallel()
	plain := sent(t, anthropic.Options{}, ask("hi")).raw
	req := ask("hi")
	req.PreviousAnswer = "msg_1"
	if got := sent(t, anthropic.Options{}, req).raw; got != plain {
		t.Errorf("got %s without diagnostics, want %s", got, plain)
	}
	for previous, want := range map[string]string{"": `"diagnostics":{"previous_message_id":null}`, "msg_1": `"diagnostics":{"previous_message_id":"msg_1"}`} {
		req.DiagnoseCache, req.PreviousAnswer = true, previous
		p := sent(t, anthropic.Options{}, req)
		if !strings.Contains(p.raw, want) || p.header.Get("Anthropic-Beta") != "" {
			t.Errorf("got %s, want %s in it and no beta", p.raw, want)
		}
		if rest := strings.Replace(p.raw, want+",", "", 1); rest != plain {
			t.Errorf("got %s without the diagnostics, want %s", rest, plain)
		}
	}
}

// What the API says is read from streams and from whole answers; what is no diagnosis is left out.
func TestDiagnosticsAreRead(t *testing.T) {
	t.Parallel()
	changed := &llm.CacheDiagnosis{Missed: true, Words: "tools_changed (cache_missed_input_tokens: 90)"}
	for name, tt := range map[string]struct {
		diagnostics string
		want        *llm.CacheDiagnosis
	}{
		"a change":       {`{"cache_miss_reason":{"type":"tools_changed","cache_missed_input_tokens":90}}`, changed},
		"no record":      {`{"cache_miss_reason":{"type":"previous_message_not_found"}}`, &llm.CacheDiagnosis{Words: "previous_message_not_found"}},
		"a new word":     {`{"cache_miss_reason":{"type":"speed_changed","path":"x"}}`, &llm.CacheDiagnosis{Missed: true, Words: "speed_changed"}},
		"nothing":        {`null`, nil},
		"not yet":        {`{"cache_miss_reason":null}`, nil},
		"another form":   {`"tools"`, nil},
		"long and dirty": {`{"cache_miss_reason":{"type":"a\u001b[31m \u0000\n` + strings.Repeat("b", 300) + `"}}`, &llm.CacheDiagnosis{Words: "a[31m \uFFFD " + strings.Repeat("b", 190)}},
	} {
		message := `{"id":"msg_2","type":"message","diagnostics":` + tt.diagnostics + `,"content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`
		for form, answer := range map[string]string{"whole": message, "streamed": stream(
			`{"type":"message_start","message":`+message+`}`, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"ok"}}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`, `{"type":"message_stop"}`)} {
			t.Run(name+", "+form, func(t *testing.T) {
				t.Parallel()
				m := open(t, anthropic.Options{BaseURL: serve(t, 200, answer).url})
				req := ask("hi")
				if res, err := call(t, m, req); err != nil || res.ID != "" || res.Diagnosis != nil {
					t.Errorf("got %+v, %v without asking", res, err)
				}
				req.DiagnoseCache = true
				res, err := call(t, m, req)
				if err != nil || res.Text != "ok" || res.ID != "msg_2" && name != "another form" {
					t.Errorf("got %+v, %v", res, err)
				}
				if diff := cmp.Diff(tt.want, res.Diagnosis); diff != "" {
					t.Errorf("got another diagnosis (-want +got):\n%s", diff)
				}
			})
		}
	}
}
