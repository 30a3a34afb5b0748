package openai_test

import (
	"net/http"
	"testing"

	"bobbin/app/core/llm/openai"
	"bobbin/tests/must"
)

// Which model has answered comes with the end of the answer, if the provider says it.
func TestAnsweringModel(t *testing.T) {
	t.Parallel()
	for want, event := range map[string]string{
		"gpt-4o-2024-08-06": `{"model":"gpt-4o-2024-08-06","choices":[{"delta":{"content":"hi"}}]}`,
		"":                  `{"model":null,"choices":[{"delta":{"content":"hi"}}]}`,
	} {
		s := serve(t, func(w http.ResponseWriter, _ *http.Request) { say(w, event, finishStop, done) })
		got, ended := "", false
		for d, err := range s.model(t, openai.Options{}).Stream(t.Context(), ask("hi")) {
			must.Do(t, err)
			if d.Finish != "" {
				got, ended = d.Model, true
			}
		}
		if got != want || !ended {
			t.Errorf("got model %q at the end (%t), want %q", got, ended, want)
		}
	}
}
