package provider_test

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// The SDKs of Anthropic and OpenAI, at the versions of requirements.txt, accept all that the strict
// providers answer, and what they send back is valid.
func TestStrictSDKs(t *testing.T) {
	t.Parallel()
	python := process.FindPythonClients(t)
	strict := account("a")
	claude, gpt := newServer(t, strict), provider.NewResponsesHandler(strict)
	web := httptest.NewServer(gpt)
	defer web.Close()
	cmd := exec.CommandContext(t.Context(), python, "sdks.py", strings.TrimSuffix(claude.URL, "/v1"), web.URL+"/v1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantEqual(t, "thoughts of Claude", claude.Thoughts(), provider.Thoughts{Verified: 28, Dropped: 6, Refused: 1})
	wantEqual(t, "reasoning of GPT", gpt.Thoughts(), provider.Thoughts{Verified: 6, Dropped: 3})
}
