package e2e_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// nativeSetups is a session with native summaries whose agent changes, with a strict provider.
type nativeSetups struct {
	*apptest.Bobbin

	t     *testing.T
	model compactor
	id    core.SessionID
	sent  *atomic.Int64 // compactions that came back to the provider
	turns int
}

// nativeAgent returns the file of an agent with native summaries.
func nativeAgent(prompt, tools string) string {
	return fmt.Sprintf("name: helper\nsystem_prompt: %s\ntools: [%s]\ncontext: {strategy: native, summary_model: writer, timing: inline, min_recent_messages: 4}\n", prompt, tools)
}

// newNativeSetups starts a Bobbin whose agent has the tools search_history and calculator.
func newNativeSetups(t *testing.T, start func(*testing.T, *provider.Strict) compactor, strict provider.Strict) *nativeSetups {
	t.Helper()
	k := &nativeSetups{t: t, sent: new(atomic.Int64)}
	strict.Account, strict.Secret, strict.AlwaysThinks = "account", "secret", true
	refuses := strict.RefusesBlob
	strict.RefusesBlob = func(n int) bool {
		k.sent.Add(1)
		return refuses != nil && refuses(n)
	}
	k.model = start(t, &strict)
	m := k.model.model
	m.Name, m.ContextWindow, m.MaxOutputTokens = "house", 64_000, 8_192
	writer := apptest.NewProvider(t, provider.Options{})
	k.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("writer", 64_000, 4_096, writer), func(cfg *config.Config) {
		cfg.Models = append(cfg.Models, m)
		cfg.DefaultLLM = "house"
	}, apptest.WithAgent("helper", nativeAgent("You are the first.", "search_history, calculator")))
	k.id = apptest.NewSession(t, k.Client, core.Session{Agent: "helper"})
	return k
}

// say sends so many messages.
func (k *nativeSetups) say(n int) {
	k.t.Helper()
	for range n {
		k.turns++
		apptest.SendMessage(k.t, k.Client, core.SendMessage{SessionID: k.id, Content: strings.ReplaceAll(apptest.NewWriter(uint64(k.turns)).Question(1), "tool", "thing")})
	}
}

// change changes the agent's file.
func (k *nativeSetups) change(prompt, tools string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.Config.AgentsDir, "helper.yaml"), []byte(nativeAgent(prompt, tools)), 0o600); err != nil {
		k.t.Fatal(err)
	}
	if code, out, errs := reload(k.t, k.Config); code != 0 {
		k.t.Fatalf("reload: %d, %s%s", code, out, errs)
	}
}

// summarize makes the next summary.
func (k *nativeSetups) summarize() {
	k.t.Helper()
	if _, err := k.Summarize(k.t.Context(), k.id, ""); err != nil {
		k.t.Fatal(err)
	}
}

// want checks that prompts have the native summary of a version, begin with a system prompt and append
// others; that so many thoughts are kept and left out; and that the provider refused and dropped none.
func (k *nativeSetups) want(version int, first string, appended []string, kept, dropped int) {
	k.t.Helper()
	report := report(k.t, k.Client, k.id)
	if report.SummaryVersion != version || !strings.Contains(report.SummaryReason, "Prompts have the provider's own summary") {
		k.t.Errorf("got version %d, %q, want the native summary of version %d", report.SummaryVersion, report.SummaryReason, version)
	}
	begins, found := promptTexts(k.t, k.Bobbin, k.id)
	if !strings.Contains(begins, first) || !slices.EqualFunc(found, appended, strings.Contains) {
		k.t.Errorf("got %q and then %q, want %q and then %q", begins, found, first, appended)
	}
	lost := 0
	for _, group := range report.Thoughts.Dropped {
		lost += group.Count
	}
	if report.Thoughts.Kept != kept || lost != dropped {
		k.t.Errorf("got the thoughts %+v, want %d kept and %d left out", report.Thoughts, kept, dropped)
	}
	if got := k.model.thoughts(); got.Dropped > 0 || got.Refused > 0 {
		k.t.Errorf("got %+v, want no thought refused or dropped", got)
	}
}

// Behind a native summary the agent's prompt changes, it gets a tool and loses one: prompts keep the summary and
// all thoughts behind it, over a restart too. The next summary is native as well: behind one that covers the
// changes prompts begin anew, and the thoughts before it are lost; a change behind what it covers stays where it is.
func TestNativeSummaryBehindOtherSetups(t *testing.T) {
	t.Parallel()
	for name, start := range compactors {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newNativeSetups(t, start, provider.Strict{})
			before := func(n int) (kept, dropped int) { // thoughts of messages that were there before a summary
				if name == "Anthropic" {
					return n, 0
				}
				return 0, n
			}
			k.say(6)
			k.summarize()
			kept, dropped := before(2)
			k.say(1)
			k.want(1, "the first", nil, kept+1, dropped)
			k.change("You are the second.", "search_history, calculator, current_time")
			k.say(1)
			k.want(1, "the first", []string{"the second"}, kept+2, dropped)
			k.Restart()
			k.say(1)
			k.change("You are the third.", "calculator, current_time")
			k.say(2)
			k.want(1, "the first", []string{"the second", "the third"}, kept+5, dropped)
			if got := k.sent.Load(); got != 6-1 {
				t.Errorf("the summary went back %d times, want with each of 5 messages", got)
			}

			k.summarize()
			k.want(2, "the third", nil, 0, 2)
			k.say(2)
			k.want(2, "the third", nil, 2, 2)
			k.change("You are the fourth.", "calculator, search_history")
			k.say(1)
			k.want(2, "the third", []string{"the fourth"}, 3, 2)
			k.summarize()
			kept, dropped = before(2)
			k.want(3, "the third", []string{"the fourth"}, kept, dropped)
			k.Restart()
			k.say(1)
			k.want(3, "the third", []string{"the fourth"}, kept+1, dropped)
		})
	}
}
