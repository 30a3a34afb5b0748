package e2e_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// The six scenarios of the requirements B, word for word, and the five policies side by
// side in one process.

// spacious returns a Bobbin whose model is so large that only an agent's own numbers
// trigger a summary.
func spacious(t *testing.T, agents ...apptest.Setting) (*apptest.Bobbin, *provider.Server) {
	t.Helper()
	p := apptest.NewProvider(t, provider.Options{})
	return apptest.New(t, dbtest.MigratedSQLiteURL(t), append([]apptest.Setting{apptest.WithModel("house", 1_000_000, 8192, p)}, agents...)...), p
}

// budgetAgent is an agent with the policy budget and what else its file says.
func budgetAgent(name, more string) apptest.Setting {
	return apptest.WithAgent(name, "name: "+name+"\nsystem_prompt: You answer.\ncontext:\n  policy: budget\n"+more)
}

// exchanges has so many short questions answered; each is two messages in the log.
func exchanges(t *testing.T, c *client.Client, id core.SessionID, n int) {
	t.Helper()
	for i := range n {
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: fmt.Sprintf("Note %d: the pump in hall three lost %d liters, and nobody noticed.", i, 10+i)})
	}
}

// awaitSummary waits until the session has this version of a summary.
func awaitSummary(t *testing.T, c *client.Client, id core.SessionID, version int) core.Session {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range c.WatchSession(ctx, id, core.Cursor{}) {
		if err != nil {
			t.Fatalf("watch: %v", err)
		}
		if e.Type == core.EventContextCompleted && apptest.EventData[core.ContextData](t, e).Version >= version {
			break
		}
	}
	return session(t, c, id)
}

// trigger returns the report's trigger of this name.
func trigger(t *testing.T, r core.ContextReport, name string) core.TriggerStatus {
	t.Helper()
	for _, s := range r.Triggers {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("got the triggers %+v, want one called %s", r.Triggers, name)
	return core.TriggerStatus{}
}

// B1, B3, B4, B5: the Nth message since the last summary makes one, after the exchange.
func TestScenarioMessagesTrigger(t *testing.T) {
	t.Parallel()
	h, p := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "talker"})
	exchanges(t, h.Client, id, 14)
	if s := session(t, h.Client, id); s.SummaryVersion != 0 || p.Summaries() != 0 {
		t.Fatalf("28 messages: got summary %d, want none before the 30th", s.SummaryVersion)
	}
	exchanges(t, h.Client, id, 1)
	s := awaitSummary(t, h.Client, id, 1)
	if s.MessageCount != 30 || s.SummarizedCount != 24 || s.SummaryVersion != 1 {
		t.Errorf("30 messages: got %d, %d summarized in version %d, want 24 in version 1", s.MessageCount, s.SummarizedCount, s.SummaryVersion)
	}
	all := apptest.ListMessages(t, h.Client, id)
	made := apptest.Must(client.Call(t.Context(), h, ops.GetSummary, ops.InSummary{InSession: ops.InSession{SessionID: id}, Version: 1}))(t)
	if made.FromID != all[0].ID || made.ThroughID != all[23].ID || made.MessagesCovered != 24 || made.TokenCount == 0 || made.CreatedAt.IsZero() || made.Content == "" {
		t.Errorf("got the summary %+v, want what it covers, from the first to the 24th message, when and how large", made)
	}
	if made.Trigger != "messages" || p.Summaries() != 1 {
		t.Errorf("got the trigger %s and %d calls, want messages and 1", made.Trigger, p.Summaries())
	}
}

// B5, C5: the status shows both triggers, each with its share, and the last summary.
func TestScenarioStatus(t *testing.T) {
	t.Parallel()
	h, _ := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "talker"})
	exchanges(t, h.Client, id, 10)
	r := contextOf(t, h.Client, id)
	if m := trigger(t, r, "messages"); m.Value != 20 || m.Threshold != 30 || m.Percent != 66 || m.Fires {
		t.Errorf("got %+v, want 20 of 30 messages, 66 %%", m)
	}
	k := trigger(t, r, "tokens")
	if k.Threshold != 128_000 || k.Value == 0 || k.Percent != k.Value*100/k.Threshold {
		t.Errorf("got %+v, want the tokens since the last summary of 128,000", k)
	}
	if len(r.Summaries) != 0 || r.Coverage.Summarized != 0 || r.Coverage.Verbatim != 20 {
		t.Errorf("got %d summaries and %+v, want none yet", len(r.Summaries), r.Coverage)
	}
	exchanges(t, h.Client, id, 5)
	awaitSummary(t, h.Client, id, 1)
	r = contextOf(t, h.Client, id)
	if len(r.Summaries) != 1 || r.Summaries[0].MessagesCovered != 24 || r.Summaries[0].TokenCount == 0 {
		t.Fatalf("got the summaries %+v, want one of 24 messages", r.Summaries)
	}
	if m := trigger(t, r, "messages"); m.Value != 6 {
		t.Errorf("got %+v, want the 6 messages since the summary", m)
	}
}
