package responses_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
)

// An organization that may not have summaries is asked once whether it may.
func TestSummariesAreRefused(t *testing.T) {
	t.Parallel()
	const unverified = `{"error":{"message":"Your organization must be verified to generate reasoning summaries.","type":"invalid_request_error","param":"reasoning.summary","code":"unsupported_value"}}`
	s := serve(t, refuse(400, unverified), fine)
	m := open(t, s, responses.Options{})
	for range 2 {
		if res, err := collect(t, m, ask("hi")); err != nil || res.Text != "ok" {
			t.Fatalf("got %q, %v", res.Text, err)
		}
	}
	var got []bool
	for _, r := range s.Received() {
		got = append(got, strings.Contains(string(r.Body), `"summary":"auto"`))
	}
	if want := []bool{true, false, false}; !slices.Equal(got, want) {
		t.Errorf("got summaries requested %v, want %v", got, want)
	}

	for name, body := range map[string]string{
		"another parameter": `{"error":{"message":"Unsupported value: 'reasoning.effort' does not support 'max'","code":"unsupported_value"}}`,
		"another error":     `{"error":{"message":"The reasoning summaries of your files are wrong.","code":"invalid_value"}}`,
	} {
		s := serve(t, refuse(400, body))
		if _, err := collect(t, open(t, s, responses.Options{}), ask("hi")); !llm.IsKind(err, llm.KindInvalid) || len(s.Received()) != 1 {
			t.Errorf("%s: got %v after %d requests, want one", name, err, len(s.Received()))
		}
	}
}
