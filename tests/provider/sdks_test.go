package provider_test

import (
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"

	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/process"
	"bobbin/tests/provider"
)

// The SDKs of Anthropic and OpenAI, at the versions of requirements.txt, accept all that the strict
// providers answer, and what they send back is valid.
func TestStrictSDKs(t *testing.T) {
	t.Parallel()
	python := process.FindPythonClients(t)
	strict := provider.Strict{Account: "a", Secret: "secret", AlwaysThinks: true}
	claude, gpt := must.Get(provider.New(provider.Options{Strict: &strict}))(t), provider.NewResponsesHandler(strict)
	defer claude.Close()
	web := httptest.NewServer(gpt)
	defer web.Close()
	cmd := exec.CommandContext(t.Context(), python, "sdks.py", strings.TrimSuffix(claude.URL, "/v1"), web.URL+"/v1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	compare.Equal(t, "Claude", provider.Thoughts{Verified: 22, Dropped: 3, Refused: 1}, claude.Thoughts())
	compare.Equal(t, "GPT", provider.Thoughts{Verified: 6, Dropped: 3}, gpt.Thoughts())
}
