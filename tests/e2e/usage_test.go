package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// usageOf returns the usage of a session.
func usageOf(t testing.TB, c *client.Client, id core.SessionID) core.UsageTotal {
	t.Helper()
	detail := must.Get(client.Call(t.Context(), c, ops.GetSession, ops.InSession{SessionID: id}))(t)
	return detail.Usage
}

// rows returns the keys and the calls of a usage.
func rows(t testing.TB, c *client.Client, by core.UsageGroup) []string {
	t.Helper()
	report := must.Get(client.Call(t.Context(), c, ops.GetUsage, core.UsageQuery{GroupBy: by}))(t)
	var list []string
	for _, r := range report.Items {
		list = append(list, fmt.Sprintf("%s %d", r.Key, r.Calls))
	}
	return list
}

// Usage and cost per session, user, agent, model and day, the caller's own; every
// run says by which version of its agent it was done.
func TestUsageAndCost(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), twoOwners, func(c *config.Config) {
			c.Models[0].InputPrice, c.Models[0].OutputPrice = 2, 8
		})
		alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
		first := apptest.NewSession(t, alice, ops.NewSession{UserID: "u1"})
		second := apptest.NewSession(t, alice, ops.NewSession{UserID: "u2", Agent: "quick"})
		got := apptest.SendMessage(t, alice, core.SendMessage{SessionID: first, Content: "use the tool"})
		apptest.SendMessage(t, alice, core.SendMessage{SessionID: second, Content: "hello"})
		agent, err := client.Call(t.Context(), alice, ops.GetAgent, ops.InAgent{Name: "assistant"})
		if err != nil || len(agent.Version) != 12 || got.Run.AgentVersion != agent.Version {
			t.Errorf("got run of version %q, want %q, error %v", got.Run.AgentVersion, agent.Version, err)
		}
		total := usageOf(t, alice, first)
		if want := 2*total.InputTokens + 8*total.OutputTokens; total.Calls != 2 || total.CostMicroUSD != want || want == 0 || total.UnpricedCalls != 0 {
			t.Errorf("got %+v, want two calls for %d", total, want)
		}
		if u := got.Run.Usage; int64(u.InputTokens) != total.InputTokens || int64(u.OutputTokens) != total.OutputTokens {
			t.Errorf("got %+v in the run, %+v in the books", u, total)
		}
		today := time.Now().UTC().Format(time.DateOnly)
		for by, want := range map[core.UsageGroup][]string{
			core.UsageBySession: {string(second) + " 1", string(first) + " 2"},
			core.UsageByUser:    {"u1 2", "u2 1"},
			core.UsageByAgent:   {"assistant 2", "quick 1"},
			core.UsageByModel:   {"house 3"},
			core.UsageByDay:     {today + " 3"},
		} {
			if got := rows(t, alice, by); !slices.Equal(got, want) && by != core.UsageByDay {
				t.Errorf("by %s: got %q, want %q", by, got, want)
			}
			compare.Equal(t, "bob's rows by "+string(by), 0, len(rows(t, bob, by)))
		}
		_, err = client.Call(t.Context(), bob, ops.GetSession, ops.InSession{SessionID: first})
		wantProblem(t, err, core.ErrNotFound, http.StatusNotFound, "does not exist")
		_, err = client.Call(t.Context(), alice, ops.GetUsage, core.UsageQuery{GroupBy: "hour"})
		wantProblem(t, err, core.ErrInvalid, http.StatusUnprocessableEntity, "group_by")
	})
}

// Spend limits are per key and day: over one, messages are refused until midnight,
// and a run at work ends before its next model call; others go on.
func TestSpendLimits(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, p), twoOwners, func(c *config.Config) {
			c.Models[0].InputPrice, c.Models[0].OutputPrice = 2, 8
			c.Auth.Limits = []config.SpendLimit{{Key: "alice", TokensPerDay: 10}, {Key: "bob", USDPerDay: 1000}}
		})
		alice, bob := h.NewClient("alice's secret"), h.NewClient("bob's secret")
		id := apptest.NewSession(t, alice, ops.NewSession{})
		got := apptest.ReadTurn(t, alice.Send(t.Context(), core.SendMessage{SessionID: id, Content: "use the tool", ClientMessageID: "c-1"}))
		if got.Run.Status != core.RunFailed || got.Run.Error == nil || got.Run.Error.Code != core.CodeSpendLimit ||
			!strings.Contains(got.Run.Error.Message, "the limit of 10 tokens a day is reached") {
			t.Errorf("got run %s, error %+v, want it ended by the limit before its second call", got.Run.Status, got.Run.Error)
		}
		compare.Equal(t, "tool results", 1, kinds(apptest.ListMessages(t, alice, id))["tool results"])
		_, err := alice.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "more"})
		wantProblem(t, err, core.ErrRateLimited, http.StatusTooManyRequests, "it begins anew at ")
		var problem *client.ProblemError
		if !errors.As(err, &problem) || problem.Code != core.CodeSpendLimit || problem.RetryAfter <= 0 || problem.RetryAfter > 24*time.Hour {
			t.Errorf("got %+v, want when to come back", problem)
		}
		// What was accepted before is answered with its run.
		again, err := alice.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "use the tool", ClientMessageID: "c-1"})
		if err != nil || again.ID != got.Run.ID {
			t.Errorf("got run %q, error %v, want that of the first time", again.ID, err)
		}
		compare.Equal(t, "requests to the provider", 1, p.Requests())
		apptest.SendMessage(t, bob, core.SendMessage{SessionID: apptest.NewSession(t, bob, ops.NewSession{}), Content: "hello"})
		const unpriced = `a model without a price is refused to keys with usd_per_day`
		if strings.Contains(h.Log.String(), unpriced) {
			t.Error("a start warns of models that have prices")
		}
		h.Config.Models[0].InputPrice, h.Config.Models[0].OutputPrice = 0, 0
		if h.Restart(); !strings.Contains(h.Log.String(), unpriced) || !strings.Contains(h.Log.String(), "model=house keys=[bob]") {
			t.Errorf("got the log %s, want the model without a price, and whom it is refused to", h.Log)
		}
	})
}

// A run that ends within the grace period of a shutdown has measured its model: the next start knows it.
func TestShutdownKeepsCalibration(t *testing.T) {
	t.Parallel()
	p, g := newHolding(t)
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("house", 8192, 2048, p))
	id, _ := held(t, h, g)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		h.Stop()
	}()
	awaitReadiness(t, h, http.StatusServiceUnavailable, "")
	g.open()
	<-stopped
	h.Start()
	compare.Equal(t, "samples after the restart: want that of the run", 1, report(t, h.Client, id).Calibration.Samples)
}

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
				apptest.WithModel(cloud, 32_768, 2048, servers[cloud]), func(c *config.Config) { c.Titles = true }, c.setting,
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
