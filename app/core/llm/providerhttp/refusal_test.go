package providerhttp_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/tests/compare"
)

// What a provider answers may be shown, stored and logged: it is cleaned and bounded.
func TestRefusalsAreCleaned(t *testing.T) {
	t.Parallel()
	p := &providerhttp.Peer{Provider: "p", Key: "hush"}
	e := p.Refusal(400, nil, []byte(`{"error":{"message":"no: hush, sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH, \u001b]52;c;eA==\u0007 \u202eok\nnext"}}`))
	compare.Equal(t, "the words: want no secrets and no control characters", "no: ***, [redacted: api key], ]52;c;eA== ok next", e.Words())
	e = p.Refusal(400, nil, []byte(strings.Repeat("ä ", 10_000)))
	if words := e.Words(); len(words) > 410 || !utf8.ValidString(words) {
		t.Errorf("got %d bytes, want about 400", len(words))
	}
	for _, status := range []int{401, 429, 500} {
		compare.Equal(t, fmt.Sprintf("%d: words of the operator's business", status), "", p.Refusal(status, nil, []byte("internal.host:8080 said no")).Words())
	}
}

// Hostile answers are read in bounds.
func TestRefusalsHaveBounds(t *testing.T) {
	t.Parallel()
	p := &providerhttp.Peer{Provider: "p"}
	for name, body := range map[string]string{
		"deep":        strings.Repeat(`{"error":`, 20_000) + `"prompt is too long"`,
		"many":        `{"errors":[` + strings.Repeat(`{"message":"x"},`, 5_000) + `{"message":"prompt is too long"}]}`,
		"quoted deep": strings.Repeat(`{"error":"`, 5_000),
		"braces":      strings.Repeat(`{`, 60_000),
		"one word":    strings.Repeat(`maximum `, 8_000),
		"numbers":     strings.Repeat(`tokens 123456 > `, 4_000),
	} {
		if e := p.Refusal(400, http.Header{}, []byte(body)); e == nil || len(e.Message) > 1_100 {
			t.Errorf("%s: got %d bytes", name, len(e.Message))
		}
	}
}

func FuzzRefusal(f *testing.F) {
	for _, body := range []string{
		"", `{"error":{"message":"prompt is too long: 9000 tokens > 8192 maximum","code":"x"}}`, `[{"error":{"code":400}}]`,
		`{"detail":"Error code: 400 - {'error': {'message': 'it\'s', 'code': 7}}"}`, `{"error":{"metadata":{"raw":"{\"error\":\"{\\\"message\\\":1}\"}"}}}`, "<400> range [1, 8192]", "hush",
		`[{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"34s"}]}}]`, `{"detail":[{"msg":"x"}],"message":{"detail":1}}`,
	} {
		f.Add(400, body, "-1")
	}
	f.Add(429, "<html>", "Wed, 21 Oct 2099 07:28:00 GMT")
	f.Add(500, "", "NaN")
	f.Fuzz(func(t *testing.T, status int, body, after string) {
		e := (&providerhttp.Peer{Provider: "p", Key: "hush"}).Refusal(status, http.Header{"Retry-After": {after}}, []byte(body))
		switch {
		case e.Kind == "", e.RetryAfter < 0, len(e.Code) > 1_010, strings.Contains(e.Error()+e.Code, "hush"):
			t.Errorf("got %+v", e)
		case e.Message == "" && status != 0, !utf8.ValidString(e.Message), len(e.Message) > 1_010, len(e.Words()) > 410:
			t.Errorf("got the message %q", e.Message)
		case e.Limit < 0 || e.Prompt < 0 || e.Requested < 0 || e.Kind != llm.KindContextLength && e.Limit+e.Prompt+e.Requested > 0:
			t.Errorf("got %s with limit %d, prompt %d, requested %d", e.Kind, e.Limit, e.Prompt, e.Requested)
		}
	})
}

func TestDroppedThoughts(t *testing.T) {
	for name, tt := range map[string]struct {
		event string
		want  *llm.DroppedThoughts
	}{
		"none":       {`{"input_transformations":[]}`, nil},
		"null":       {`{"input_transformations":null}`, nil},
		"absent":     {`{}`, nil},
		"odd":        {`{"input_transformations":{"type":"thinking_dropped"}}`, nil},
		"kept":       {`{"input_transformations":[{"type":"thinking_mismatch_allowed","reason":"prefix_binding_mismatch"}]}`, nil},
		"new type":   {`{"input_transformations":[{"type":"image_resized","path":"messages.0.content.0"}]}`, nil},
		"two":        {`{"input_transformations":[{"type":"thinking_dropped","reason":"prefix_binding_mismatch"},{"type":"thinking_dropped","reason":"prefix_binding_mismatch"}]}`, dropped(llm.DropPrefix, 2)},
		"model":      {`{"input_transformations":[{"type":"thinking_dropped","reason":"model_binding_mismatch"}]}`, dropped(llm.DropModel, 1)},
		"account":    {`{"input_transformations":[{"type":"thinking_dropped","reason":"organization_binding_mismatch"}]}`, dropped(llm.DropOrganization, 1)},
		"end user":   {`{"input_transformations":[{"type":"thinking_dropped","reason":"end_user_binding_mismatch"}]}`, dropped(llm.DropEndUser, 1)},
		"OpenAI's":   {`{"input_transformations":[{"type":"reasoning","action":"removed","reason":"prefix_mismatch"}]}`, dropped(llm.DropPrefix, 1)},
		"its others": {`{"input_transformations":[{"type":"reasoning","action":"kept","reason":"prefix_mismatch"},{"type":"reasoning","action":"removed","reason":"x"}]}`, dropped(llm.DropOther, 1)},
		"new reason": {`{"input_transformations":[{"type":"thinking_dropped","reason":"moon"}]}`, dropped(llm.DropOther, 1)},
	} {
		var answer struct {
			Changes providerhttp.Transformations `json:"input_transformations"`
		}
		if err := providerhttp.IgnoreType(json.Unmarshal([]byte(tt.event), &answer)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		compare.Equal(t, name, tt.want, answer.Changes.ToCore())
	}
}

func dropped(reason llm.DropReason, n int) *llm.DroppedThoughts {
	return &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{reason: n}}
}
