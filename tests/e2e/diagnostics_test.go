package e2e_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// newDiagnosed starts a server with the model and two agents of it, clerk and poet.
func newDiagnosed(t *testing.T, m config.Model) (*apptest.Bobbin, core.SessionID) {
	t.Helper()
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		m.Name, m.ContextWindow, m.MaxOutputTokens = "house", 128_000, 4_096
		c.Models, c.DefaultLLM = append(c.Models, m), m.Name
	}, apptest.WithAgent("clerk", "name: clerk\nsystem_prompt: You are a clerk.\ntools: [calculator]\n"),
		apptest.WithAgent("poet", "name: poet\nsystem_prompt: You are a poet.\ntools: [search_history]\n"),
		apptest.WithAgent("mute", "name: mute\nsystem_prompt: You are a mime.\ntools: []\n"))
	return h, apptest.NewSession(t, h.Client, core.Session{Agent: "clerk", Timezone: "Europe/Vienna"})
}

// What the provider says about its cache is in the run's report, beside what Bobbin found: after an
// edit, a restart and an agent without tools, and not while the conversation grows.
func TestCacheDiagnosticsOverHTTP(t *testing.T) {
	t.Parallel()
	for api, says := range map[string]struct{ edited, agent string }{
		"Anthropic": {"messages_changed (cache_missed_input_tokens: ", "system_changed (cache_missed_input_tokens: "},
		"OpenAI":    {"input_changed (cache_missed_tokens: ", "tools_changed (cache_missed_tokens: "},
	} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			m := compactors[api](t, &provider.Strict{Account: "account", Secret: "secret"}).model
			m.CacheDiagnostics = true
			h, id := newDiagnosed(t, m)
			misses := func(question string) []core.CacheMiss {
				t.Helper()
				return reported(t, h.Client, apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question}).Run.ID).CacheMisses
			}
			for _, question := range []string{"What do bees eat?", "Use a tool for their number.", "Where do they live?"} {
				if got := misses(question); len(got) > 0 {
					t.Errorf("got the misses %+v of a conversation that grows", got)
				}
			}
			h.Restart()
			if _, err := h.ReviseMessage(t.Context(), id, wholeLog(t, h.Client, id)[0].ID, "What do wasps eat?"); err != nil {
				t.Fatal(err)
			}
			if got := misses("Once more?"); len(got) != 1 || got[0].Part != core.PromptOfMessage || got[0].Seq != 1 || !strings.HasPrefix(got[0].Provider, says.edited) {
				t.Errorf("got the misses %+v after an edit, want the first message, and %q", got, says.edited)
			}
			change := func(agent string) {
				t.Helper()
				if _, err := h.UpdateSession(t.Context(), id, core.SessionPatch{Agent: &agent}); err != nil {
					t.Fatal(err)
				}
			}
			change("poet")
			if got := misses("And a poem?"); len(got) > 0 {
				t.Errorf("got the misses %+v of an agent with another tool, want its changes appended", got)
			}
			change("mute")
			if got := misses("And now?"); len(got) != 1 || got[0].Part != core.PromptSystem || !strings.HasPrefix(got[0].Provider, says.agent) {
				t.Errorf("got the misses %+v of an agent without tools, want the system prompt, and %q", got, says.agent)
			}
			if got := misses("And then?"); len(got) > 0 {
				t.Errorf("got the misses %+v of a conversation that grows again", got)
			}
		})
	}
}

var diagnosticsMember = regexp.MustCompile(`"diagnostics":\{[^}]*\},`)

// A model without the setting sends not one byte more, and one with it nothing but the member.
func TestDiagnosticsAreOffByDefault(t *testing.T) {
	t.Parallel()
	bodies := map[bool][]string{}
	for _, on := range []bool{false, true} {
		p := apptest.NewProvider(t, provider.Options{Strict: &provider.Strict{Account: "account", Secret: "secret"}, Record: true})
		h, id := newDiagnosed(t, config.Model{Provider: "anthropic", Model: "claude-opus-5-5", BaseURL: p.URL, CacheDiagnostics: on})
		for _, question := range []string{"What do bees eat?", "Use a tool for their number."} {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: question})
		}
		for _, r := range p.Received() {
			body := string(r.Body)
			if strings.Contains(body, `"diagnostics"`) != on {
				t.Errorf("cache_diagnostics %v: got %s", on, body)
			}
			bodies[on] = append(bodies[on], diagnosticsMember.ReplaceAllString(body, ""))
		}
	}
	if diff := cmp.Diff(bodies[false], bodies[true]); diff != "" || len(bodies[false]) != 3 {
		t.Errorf("got %d requests, which differ (-off +on):\n%s", len(bodies[false]), diff)
	}
}
