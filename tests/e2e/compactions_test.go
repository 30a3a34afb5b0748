package e2e_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// blobRefusals decides which of the compactions that come back to a provider are refused.
type blobRefusals struct {
	all      atomic.Bool
	sent     atomic.Int64 // prompts that began with a compaction
	refused  atomic.Int64
	everyNth int64
}

func (r *blobRefusals) refuses(int) bool {
	n := r.sent.Add(1)
	if r.all.Load() || n%r.everyNth == 0 {
		r.refused.Add(1)
		return true
	}
	return false
}

// strictProvider is a provider that checks thoughts and compactions.
type strictProvider struct {
	model    config.Model
	thoughts func() provider.Thoughts
}

// strictProviders start the providers by the name of their API. Anthropic's writes compactions.
var strictProviders = map[string]func(t *testing.T, strict *provider.Strict) strictProvider{
	"Anthropic": func(t *testing.T, strict *provider.Strict) strictProvider {
		t.Helper()
		p := apptest.NewProvider(t, provider.Options{Strict: strict, Say: briefly})
		return strictProvider{config.Model{Provider: "anthropic", Model: "claude-opus-5-5", BaseURL: p.URL, ThinkingBudget: 1_024}, p.Thoughts}
	},
	"OpenAI": func(t *testing.T, strict *provider.Strict) strictProvider {
		t.Helper()
		h := provider.NewResponsesHandler(*strict)
		p := httptest.NewServer(h)
		t.Cleanup(p.Close)
		return strictProvider{config.Model{Provider: "openai", API: config.APIResponses, Model: "gpt-6.2", BaseURL: p.URL + "/v1"}, h.Thoughts}
	},
}

// briefly is what the models say, so that the user's messages fill the window.
func briefly(question string) string { return question[:min(len(question), 80)] }

// newCompactorServer returns a server whose agent has the strategy native. Its models house, other_account
// and other_model write compactions; writer writes the plain summaries.
func newCompactorServer(t *testing.T, c strictProvider) *apptest.Bobbin {
	t.Helper()
	writer := apptest.NewProvider(t, provider.Options{})
	return apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("writer", 64_000, 4_096, writer), func(cfg *config.Config) {
		c.model.ContextWindow, c.model.MaxOutputTokens = 8_192, 2_048
		for _, name := range []string{"house", "other_account", "other_model"} {
			m := c.model
			m.Name = name
			switch name {
			case "other_account": // Bobbin knows accounts by address and key
				m.BaseURL = strings.Replace(m.BaseURL, "127.0.0.1", "localhost", 1)
			case "other_model":
				m.Model = strings.Replace(m.Model, "opus", "sonnet", 1)
			}
			cfg.Models = append(cfg.Models, m)
		}
		cfg.DefaultLLM = "house"
	}, apptest.WithAgent("thinker", thinker("You think.")))
}

// thinker returns the file of the agent.
func thinker(prompt string) string {
	return "name: thinker\nsystem_prompt: " + prompt + "\ntools: [search_history]\ncontext: {strategy: native, summary_model: writer, timing: inline}\n"
}

// nativeTalk is one session of the conversation.
type nativeTalk struct{ prefixTalk }

// messageQuestions is how many questions a message has: a summary is due every few messages.
const messageQuestions = 5

// say sends so many long messages to the model.
func (k *nativeTalk) say(model string, n int) {
	k.t.Helper()
	for range n {
		var b strings.Builder
		for range messageQuestions {
			k.turn++
			fmt.Fprintf(&b, "%s\n", strings.ReplaceAll(k.writer.Question(k.turn), "tool", "thing"))
		}
		apptest.SendMessage(k.t, k.h.Client, core.SendMessage{SessionID: k.id, Model: model, Content: b.String()})
	}
}

// sayUntilNative sends messages until prompts begin with a compaction.
func (k *nativeTalk) sayUntilNative() {
	k.t.Helper()
	for range 40 {
		if strings.Contains(k.check().SummaryReason, "Prompts have the provider's own summary") {
			return
		}
		k.say("house", 1)
	}
	k.t.Fatal("no native summary after 40 messages")
}

// changeAgent changes the agent's file, and checks that prompts go on to begin with the compaction.
func (k *nativeTalk) changeAgent(prompt string) {
	k.t.Helper()
	changeAgent(k.t, k.h.Config, "thinker", thinker(prompt))
	if got := k.check().SummaryReason; !strings.Contains(got, "Prompts have the provider's own summary") {
		k.t.Errorf("behind another version of the agent: got %q, want the native summary in prompts", got)
	}
}

// check checks that no message is without a place in the prompt or the summary.
func (k *nativeTalk) check() core.ContextReport {
	k.t.Helper()
	report, err := client.Call(k.t.Context(), k.h, ops.GetContext, ops.InSession{SessionID: k.id})
	if err != nil || report.Coverage.Lost != 0 {
		k.t.Fatalf("got the coverage %+v, %v, want no message lost", report.Coverage, err)
	}
	return report
}

// Sessions with the provider's own compactions go on, whatever happens to these: one in ten is refused,
// then the model and the account change and change back, then the agent changes, and at last the provider takes back none. Each
// refusal costs one call, no message is without a place.
func TestShowNative(t *testing.T) {
	t.Parallel()
	fig := apptest.NewTable("strategy native, window 8,192")
	fig.AddRow("sessions", "turns", "versions", "of them native", "prompts with one", "refused", "most extra calls", "stuck", "uncovered")
	r := &blobRefusals{everyNth: 31}
	c := strictProviders["Anthropic"](t, &provider.Strict{Account: "account", Secret: "secret", OnMismatch: provider.Drop, RefusesBlob: r.refuses})
	h := newCompactorServer(t, c)
	sessions, turns, versions, natives, most := apptest.ChooseSize(1, 100), 0, 0, 0, 0
	for n := range sessions {
		k := &nativeTalk{prefixTalk{t: t, h: h, writer: apptest.NewWriter(uint64(n)), id: apptest.NewSession(t, h.Client, ops.NewSession{Agent: "thinker", Timezone: "Europe/Vienna"})}}
		for _, phase := range []func(){
			func() { k.say("house", 12) },
			func() { k.say("other_model", 2); k.say("house", 2) },
			func() { k.say("other_account", 2); k.say("house", 2) },
			k.sayUntilNative,
			func() { k.changeAgent(fmt.Sprintf("You think, %d.", n)); k.say("house", 2) },
			k.sayUntilNative,
			func() { r.all.Store(true); k.say("house", 1); r.all.Store(false) },
			func() { k.say("house", 2) },
		} {
			before := c.thoughts().Refused
			phase()
			most = max(most, c.thoughts().Refused-before)
			k.check()
		}
		k.say("house", 2)
		turns += k.turn / messageQuestions
		v, own := k.countVersions()
		versions, natives = versions+v, natives+own
	}
	got := c.thoughts()
	fig.AddRow(sessions, turns, versions, natives, r.sent.Load(), r.refused.Load(), most, 0, 0)
	if int64(got.Refused) != r.refused.Load() || r.refused.Load() < int64(sessions) || got.Dropped > 0 || most > 1 {
		t.Errorf("got %+v and at most %d extra calls in a session at once, want %d refusals, no thought dropped, and one extra call", got, most, r.refused.Load())
	}
	if natives < 2*sessions || r.sent.Load() < int64(5*sessions) {
		t.Errorf("got %d native summaries of %d versions, in %d prompts, want them used", natives, versions, r.sent.Load())
	}
	fig.Log(t)
}

// countVersions returns how many versions of the summary there are, and how many have a native one. Each
// has words.
func (k *nativeTalk) countVersions() (versions, natives int) {
	k.t.Helper()
	page := must.Get(client.Call(k.t.Context(), k.h, ops.ListSummaries, ops.SessionPage{InSession: ops.InSession{SessionID: k.id}, PageQuery: core.PageQuery{Limit: 100}}))(k.t)
	for _, v := range page.Items {
		if v.Content == "" {
			k.t.Errorf("version %d has no words", v.Version)
		}
		if versions++; v.Native != nil {
			natives++
		}
	}
	return versions, natives
}
