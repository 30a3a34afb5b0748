package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// readers are the model servers of a test and what each of them was sent.
type readers struct {
	mu   sync.Mutex
	sent map[string]map[string]int // guarded by mu; by server, then by what was asked for: requests
	read map[string]int            // guarded by mu; by server: messages of the conversation in the texts beside answers
}

// serverOf returns a model server that is watched under a name.
func (r *readers) serverOf(t *testing.T, name string) *provider.Server {
	return apptest.NewProvider(t, provider.Options{Fault: func(_ http.ResponseWriter, a provider.Asked) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		kind := "answers"
		switch {
		case a.Summary:
			kind = "summaries"
		case strings.HasPrefix(a.Question, "<question>"):
			kind = "titles"
		}
		if r.sent[name] == nil {
			r.sent[name] = map[string]int{}
		}
		r.sent[name][kind]++
		if kind != "answers" {
			r.read[name] += strings.Count(a.Question, "the pump in hall three")
		}
		return false
	}})
}

// Summaries and titles are written where the conversation takes place, or where the
// operator said: by policy and by where the models are, who received how many requests
// and messages.
func TestPrivacy(t *testing.T) {
	t.Parallel()
	const house, cloud = "house", "cloud"
	byDefault := func(name string) func(*config.Config) { return func(c *config.Config) { c.DefaultLLM = name } }
	for _, c := range []struct {
		name    string
		setting func(c *config.Config) // of models "house" at the server house, "cloud" at the server cloud, "den" at the server house
		model   string                 // of the agent
		writer  string                 // server that writes the summaries and titles
	}{
		{"own server, cloud by default", byDefault(cloud), house, house},
		{"cloud, own server by default", byDefault(house), cloud, cloud},
		{"both on the own server", byDefault("den"), house, house},
		{"cloud named for summaries", func(c *config.Config) { c.DefaultLLM, c.ContextSummaryModel = house, cloud }, house, cloud},
	} {
		for _, policy := range contextwindow.PresetNames()[:apptest.ChooseSize(1, 5)] {
			r := &readers{sent: map[string]map[string]int{}, read: map[string]int{}}
			servers := map[string]*provider.Server{house: r.serverOf(t, house), cloud: r.serverOf(t, cloud)}
			h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel(house, 32_768, 2048, servers[house]), apptest.WithModel("den", 32_768, 2048, servers[house]),
				apptest.WithModel(cloud, 32_768, 2048, servers[cloud]), withTitles, c.setting,
				apptest.WithAgent("asked", fmt.Sprintf("name: asked\nsystem_prompt: You answer.\nmodel: %s\ncontext: {policy: %q}\n", c.model, policy)))
			id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "asked"})
			exchanges(t, h.Client, id, 12)
			if _, err := client.Call(t.Context(), h, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}); err != nil && !errors.Is(err, core.ErrConflict) { // the policy makes one
				t.Fatal(err)
			}
			h.Stop() // titles are written by then
			for server, sent := range r.sent {
				if sent["answers"] > 0 && server != c.model {
					t.Errorf("%s, %s: %s was asked for %d answers", c.name, policy, server, sent["answers"])
				}
				if n := sent["summaries"]; n > 0 && server != c.writer || n == 0 && server == c.writer && policy != "off" || sent["titles"] > 0 && server != c.writer {
					t.Errorf("%s, %s: %s was asked for %d summaries and %d titles, want %s alone to be asked", c.name, policy, server, n, sent["titles"], c.writer)
				}
				if allowed := []string{c.model, c.writer}; r.read[server] > 0 && !slices.Contains(allowed, server) {
					t.Errorf("%s, %s: %s read %d messages, want only %v to read any", c.name, policy, server, r.read[server], allowed)
				}
			}
		}
	}
}
