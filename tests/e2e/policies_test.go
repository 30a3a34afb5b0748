package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

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
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
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
	made, err := h.Summary(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	if made.FromID != all[0].ID || made.ThroughID != all[23].ID || made.MessagesCovered != 24 || made.TokenCount == 0 || made.CreatedAt.IsZero() || made.Content == "" {
		t.Errorf("got the summary %+v, want what it covers, from the first to the 24th message, when and how large", made)
	}
	if made.Trigger != "messages" || p.Summaries() != 1 {
		t.Errorf("got the trigger %s and %d calls, want messages and 1", made.Trigger, p.Summaries())
	}
}

// B1: K tokens since the last summary make one, before there are N messages.
func TestScenarioTokensTrigger(t *testing.T) {
	t.Parallel()
	h, p := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
	w := apptest.NewWriter(3)
	for range 6 { // about 24,000 tokens an exchange: K = 128,000 is reached with the sixth
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: w.Sentences(800)})
	}
	s := awaitSummary(t, h.Client, id, 1)
	made, err := h.Summary(t.Context(), id, 1)
	if err != nil {
		t.Fatal(err)
	}
	if made.Trigger != "tokens" || s.MessageCount != 12 || p.Summaries() == 0 {
		t.Errorf("got the trigger %s at %d messages, want tokens at 12, under N = 30", made.Trigger, s.MessageCount)
	}
	if made.TokensAfter >= made.TokensBefore {
		t.Errorf("got %d → %d tokens, want fewer", made.TokensBefore, made.TokensAfter)
	}
}

// B5, C5: the status shows both triggers, each with its share, and the last summary.
func TestScenarioStatus(t *testing.T) {
	t.Parallel()
	h, _ := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
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

// B5: 28 of 30 messages say that the next one will trigger, 26 do not.
func TestScenarioApproaching(t *testing.T) {
	t.Parallel()
	h, _ := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
	exchanges(t, h.Client, id, 13)
	if r := contextOf(t, h.Client, id); r.WillTrigger {
		t.Errorf("26 of 30: got will_trigger, want not yet: %+v", r.Triggers)
	}
	exchanges(t, h.Client, id, 1)
	if r := contextOf(t, h.Client, id); !r.WillTrigger {
		t.Errorf("28 of 30: got no will_trigger, want it: %+v", r.Triggers)
	}
}

// B2, B9: two agents with different numbers behave differently in one process.
func TestScenarioAgentsDiffer(t *testing.T) {
	t.Parallel()
	h, _ := spacious(t)
	quick := apptest.NewSession(t, h.Client, core.Session{Agent: "quick"})
	researcher := apptest.NewSession(t, h.Client, core.Session{Agent: "researcher"})
	exchanges(t, h.Client, quick, 8)
	exchanges(t, h.Client, researcher, 8)
	s := awaitSummary(t, h.Client, quick, 1)
	if s.MessageCount != 16 || s.SummarizedCount != 10 {
		t.Errorf("quick: got %d of %d messages summarized, want 10 of 16", s.SummarizedCount, s.MessageCount)
	}
	r := contextOf(t, h.Client, researcher)
	if s := session(t, h.Client, researcher); s.SummaryVersion != 0 {
		t.Errorf("researcher: got summary %d, want none at 16 of 50 messages", s.SummaryVersion)
	}
	for name, want := range map[string]int{"messages": 50, "tokens": 180_000} {
		if got := trigger(t, r, name).Threshold; got != want {
			t.Errorf("researcher: got %s %d, want %d", name, got, want)
		}
	}
	for name, want := range map[string]int{"messages": 15, "tokens": 32_000} {
		if got := trigger(t, contextOf(t, h.Client, quick), name).Threshold; got != want {
			t.Errorf("quick: got %s %d, want %d", name, got, want)
		}
	}
}

// B6: a session that is taken up again says how much of it is summarized, and goes on
// from the summary.
func TestScenarioResume(t *testing.T) {
	t.Parallel()
	h, p := spacious(t, budgetAgent("talker", ""))
	id := apptest.NewSession(t, h.Client, core.Session{Agent: "talker"})
	exchanges(t, h.Client, id, 15)
	awaitSummary(t, h.Client, id, 1)
	h.Restart()
	s := session(t, h.Client, id)
	if got := fmt.Sprintf("%d messages in history (%d summarized)", s.MessageCount, s.SummarizedCount); got != "30 messages in history (24 summarized)" {
		t.Errorf("got %q, want 30 and 24", got)
	}
	before := p.Requests()
	got := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "And now?"})
	if got.Answer.Content == "" || p.Requests() != before+1 {
		t.Errorf("got %d calls after the restart, want one: the summary is there", p.Requests()-before)
	}
	prompt, err := h.Prompt(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(prompt.Messages); n != 8 || !strings.Contains(strings.Join(prompt.System, "\n"), "Summary of earlier conversation:") {
		t.Errorf("got %d messages in the prompt, want the summary and 8", n)
	}
}
