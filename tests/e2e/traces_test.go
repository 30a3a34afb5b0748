package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/collector"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// newCollector starts a receiver of traces and stops it after the test.
func newCollector(t testing.TB) *collector.Server {
	t.Helper()
	c := collector.New()
	t.Cleanup(c.Close)
	return c
}

// withTraces sends traces to the collector.
func withTraces(c *collector.Server) apptest.Setting {
	return func(cfg *config.Config) { cfg.Telemetry.OTLPEndpoint = c.URL }
}

// forest is spans by their ids, and by their names.
type forest struct {
	byID  map[string]collector.Span
	named map[string][]collector.Span
}

func newForest(spans []collector.Span) forest {
	f := forest{byID: map[string]collector.Span{}, named: map[string][]collector.Span{}}
	for _, s := range spans {
		f.byID[s.ID] = s
		f.named[s.Name] = append(f.named[s.Name], s)
	}
	return f
}

// under returns the names of the spans above the span, the nearest first.
func (f forest) under(s collector.Span) (names []string) {
	for s.Parent != "" {
		s = f.byID[s.Parent]
		names = append(names, s.Name)
	}
	return names
}

// Traces of a conversation: the request, the run that it is linked to, its nodes, the
// model calls with the attributes of the conventions, the tool, the summary. They are
// all sent before the process has stopped, and nothing of what was said is in them.
func TestTracesOfAConversation(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		to := newCollector(t)
		p := apptest.NewProvider(t, provider.Options{Window: 8192, Overcount: 1.15})
		h := apptest.New(t, url, apptest.WithModel("house", 8192, 1024, p), withTraces(to), func(c *config.Config) { c.Models[0].Model = "provider-house" })
		id := apptest.NewSession(t, h.Client, ops.NewSession{UserID: "user-4711"})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "use the tool with SECRETWORD"})
		turns := 1
		for ; session(t, h.Client, id).SummaryVersion == 0 && turns < 60; turns++ {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: fmt.Sprintf("question %d: %s", turns, strings.Repeat("SECRETWORD of the pumps in hall three ", 20))})
		}
		h.Stop()
		f := newForest(to.Spans())

		requests, runs, chats := f.named["POST /api/v1/sessions/:id/messages"], f.named["invoke_agent assistant"], f.named["chat provider-house"]
		if len(requests) != turns || len(runs) != turns || int64(len(chats)) != p.Requests() {
			t.Fatalf("got %d requests, %d runs and %d model calls, want %d, %d and %d", len(requests), len(runs), len(chats), turns, turns, p.Requests())
		}
		for i, run := range runs {
			if run.Parent != "" || len(run.Links) != 1 || f.byID[run.Links[0]].Name != "POST /api/v1/sessions/:id/messages" || run.TraceID == f.byID[run.Links[0]].TraceID {
				t.Errorf("run %d %+v: want a trace of its own that is linked to its request", i, run)
			}
			if run.Attributes["gen_ai.conversation.id"] != string(id) || run.Attributes["bobbin.run.status"] != "succeeded" {
				t.Errorf("run %d: got %v", i, run.Attributes)
			}
		}
		checkCalls(t, f, chats)
		tool, summary := f.named["execute_tool calculator"], f.named["summarize"]
		if len(tool) != 1 || !slices.Equal(f.under(tool[0]), []string{"node tool_node", "invoke_agent assistant"}) || tool[0].Attributes["gen_ai.tool.name"] != "calculator" {
			t.Errorf("got the tool calls %+v, want one below its node", tool)
		}
		if len(summary) == 0 || int64(len(summary)) != p.Summaries() || summary[0].Attributes["bobbin.summary.outcome"] != "made" || summary[0].Attributes["bobbin.summary.kind"] != "rolling" {
			t.Errorf("got the summaries %+v, want the %d that were asked for", summary, p.Summaries())
		}
		for _, secret := range []string{"SECRETWORD", "answer to", "6 * 7", "You are", "user-4711", "Test the long conversation"} {
			if strings.Contains(to.Text(), secret) {
				t.Errorf("the spans hold %q", secret)
			}
		}
	})
}

// checkCalls checks where the spans of model calls are.
func checkCalls(t *testing.T, f forest, chats []collector.Span) {
	t.Helper()
	places := map[string]int{}
	for _, c := range chats {
		above := f.under(c)
		places[above[0]]++
		if above[0] != "summarize" && above[len(above)-1] != "invoke_agent assistant" || c.Kind != "CLIENT" || c.Failed {
			t.Errorf("got a model call below %q: %+v", above, c)
		}
	}
	if n := len(f.named["summarize"]); places["summarize"] != n || places["node llm_node"] != len(chats)-n {
		t.Errorf("got model calls below %v, want one below each summary and the others below llm_node", places)
	}
}
