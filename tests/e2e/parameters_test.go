package e2e_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// withAgentFile writes an agent's file.
func withAgentFile(t *testing.T, name, text string) apptest.Setting {
	return func(c *config.Config) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(c.AgentsDir, 0o700), os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte("name: "+name+"\n"+text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// withClaude adds a model that is spoken to as Anthropic's.
func withClaude(name, model string, p *provider.Server) apptest.Setting {
	return func(c *config.Config) {
		c.Models = append(c.Models, config.Model{Name: name, Provider: "anthropic", Model: model, BaseURL: p.URL, ContextWindow: 16_000, MaxOutputTokens: 2_048})
	}
}

// members returns members of the last request for an answer.
func members(t *testing.T, p *provider.Server, keys ...string) map[string]any {
	t.Helper()
	all := p.Received()
	var body map[string]any
	if err := json.Unmarshal(all[len(all)-1].Body, &body); err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	for _, key := range keys {
		if value, ok := body[key]; ok {
			out[key] = value
		}
	}
	return out
}

// The parameters of an agent's file are in each request for an answer, in the words of the
// provider, and its output limit is in the plan.
func TestAgentParameters(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{Record: true})
	const parameters = "temperature: 0\ntop_p: 0.5\nmax_output_tokens: 300\nstop: [END]\nseed: 7\nreasoning_effort: low\n" +
		"response_format: {type: json_schema, schema: {type: object}, strict: true}\n"
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8_000, 1_024, p), withClaude("claude", "claude-sonnet-4-5", p),
		withAgentFile(t, "open", "model: house\ntools: [calculator]\n"+parameters),
		withAgentFile(t, "shut", "model: claude\ntemperature: 0\nmax_output_tokens: 300\nstop: [END]\nresponse_format: {type: json_schema, schema: {type: object}}\n"))
	keys := []string{"temperature", "top_p", "max_tokens", "max_completion_tokens", "stop", "stop_sequences", "seed", "reasoning_effort", "response_format", "output_config"}

	id := apptest.NewSession(t, h.Client, core.Session{Agent: "open"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "use the tool"})
	want := map[string]any{
		"temperature": 0.0, "top_p": 0.5, "max_tokens": 300.0, "stop": []any{"END"}, "seed": 7.0, "reasoning_effort": "low",
		"response_format": map[string]any{"type": "json_schema", "json_schema": map[string]any{"name": "answer", "schema": map[string]any{"type": "object"}, "strict": true}},
	}
	if n := len(p.Received()); n != 2 {
		t.Fatalf("got %d requests, want one for the tool call and one for the answer", n)
	}
	if diff := cmp.Diff(want, members(t, p, keys...)); diff != "" {
		t.Errorf("request in OpenAI's dialect (-want +got):\n%s", diff)
	}
	report, err := h.Context(t.Context(), id)
	if err != nil || report.MaxOutput != 300 {
		t.Errorf("plan: got answers of at most %d tokens (%v), want the 300 of the agent", report.MaxOutput, err)
	}

	agent, err := h.Agent(t.Context(), "open")
	if err != nil || agent.Seed == nil || *agent.Seed != 7 || agent.ResponseFormat == nil || string(agent.ResponseFormat.Schema) != `{"type":"object"}` {
		t.Errorf("GET agent: got %+v (%v), want its parameters", agent.ModelParameters, err)
	}

	id = apptest.NewSession(t, h.Client, core.Session{Agent: "shut"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hello"})
	want = map[string]any{
		"temperature": 0.0, "max_tokens": 300.0, "stop_sequences": []any{"END"},
		"output_config": map[string]any{"format": map[string]any{"type": "json_schema", "schema": map[string]any{"type": "object"}}},
	}
	if diff := cmp.Diff(want, members(t, p, keys...)); diff != "" {
		t.Errorf("request to Claude (-want +got):\n%s", diff)
	}
}
