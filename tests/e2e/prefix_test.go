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
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// prefixTalk is a conversation with providers that bind thoughts to their prefix.
type prefixTalk struct {
	t      *testing.T
	h      *apptest.Bobbin
	id     core.SessionID
	writer *apptest.Writer
	turn   int
}

// say sends so many messages, every second of which asks for a tool.
func (k *prefixTalk) say(n int) { k.sayTo("", n) }

// sayTo sends so many messages to a model; empty = the session's.
func (k *prefixTalk) sayTo(model string, n int) {
	k.t.Helper()
	for range n {
		k.turn++
		apptest.SendMessage(k.t, k.h.Client, core.SendMessage{SessionID: k.id, Model: model, Content: k.writer.Question(k.turn)})
	}
}

// log returns the messages of the path.
func (k *prefixTalk) log() []core.Message {
	k.t.Helper()
	return must.Get(client.Call(k.t.Context(), k.h, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: k.id}}))(k.t).Items
}

// question returns the nth last message of the user.
func (k *prefixTalk) question(n int) core.Message {
	k.t.Helper()
	log := k.log()
	for i := len(log) - 1; i >= 0; i-- {
		if log[i].Role != core.RoleUser {
			continue
		}
		if n--; n == 0 {
			return log[i]
		}
	}
	k.t.Fatal("no such question")
	return core.Message{}
}

// prefixScenes are the conversations: what a person may do that changes prompts.
var prefixScenes = []struct {
	name string
	play func(k *prefixTalk)
}{
	{"tool loops", func(k *prefixTalk) {
		for range prefixTurns() / 4 {
			apptest.SendMessage(k.t, k.h.Client, core.SendMessage{SessionID: k.id, Content: "Go through the list with a loop of calls."})
			k.say(1)
		}
	}},
	{"edits and branches", func(k *prefixTalk) {
		for range prefixTurns() / 4 {
			k.say(5)
			edited := k.question(2)
			apptest.SendMessage(k.t, k.h.Client, core.SendMessage{SessionID: k.id, Edits: edited.ID, Content: "Another question."})
			k.say(2)
			revised := k.question(2)
			must.Get(client.Call(k.t.Context(), k.h, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: k.id}, Content: "A question in other words.", Run: new(false)}, MessageID: revised.ID}))(k.t)
			k.say(2)
			must.Get(client.Call(k.t.Context(), k.h, ops.RegenerateMessage, core.Regenerate{SessionID: k.id, MessageID: k.log()[len(k.log())-1].ID}))(k.t)
			must.Get(client.Call(k.t.Context(), k.h, ops.SelectMessage, apptest.InMessage(k.id, edited.ID)))(k.t)
		}
	}},
	{"another model and back", func(k *prefixTalk) {
		for range prefixTurns() / 4 {
			k.say(4)
			k.sayTo("second", 2)
			k.say(4)
		}
	}},
	{"plain chat", func(k *prefixTalk) { k.say(2 * prefixTurns()) }},
}

// prefixPolicies are the settings of the agent's context.
var prefixPolicies = []struct{ name, settings string }{
	{"window", "policy: window"},
	{"budget", "policy: budget"},
	{"sliding", "policy: sliding"},
	{"ratio", "policy: ratio"},
	{"off", "policy: off"},
	{"window, native", "policy: window, strategy: native"},
}

// prefixAgent is the agent of the conversations, as far as everything that changes prompts is due often.
const prefixAgent = `name: thinker
system_prompt: You think.
tools: [calculator, search_history]
context: {recall: auto, %s}
compaction: {threshold_iterations: 2, keep_recent_iterations: 1, min_tokens: 0}
`

// prefixColumns are the names of prefixFigures.
var prefixColumns = []any{"requests", "summaries", "refused", "dropped", "thoughts kept", "thoughts in a prompt", "tokens cached"}

// prefixFigures checks that the provider got no thought behind another prompt, and returns the figures of
// a conversation.
func prefixFigures(t *testing.T, p *provider.Server) []any {
	t.Helper()
	got := p.Thoughts()
	compare.True(t, got.Refused == 0 && got.Dropped == 0 && got.Verified != 0, "got %+v, want no thought refused or dropped", got)
	verified, answers, read, tokens := 0, 0, 0, 0
	for _, r := range p.Received() {
		verified, read, tokens = verified+r.Thoughts.Verified, read+r.CacheRead, tokens+r.Tokens
		for _, m := range r.Messages {
			if m.Role == "assistant" {
				answers++
			}
		}
	}
	each := fmt.Sprintf("%.1f", float64(verified)/float64(max(1, len(p.Received()))))
	return []any{p.Requests(), p.Summaries(), got.Refused, got.Dropped, percentOf(verified, answers), each, percentOf(read, tokens)}
}

// What a summary costs in thoughts, by where it is: before the messages that stay, at the end (with the
// user's message alone behind it), and the provider's own, behind which all thoughts stay, over
// several summaries.
func TestShowPrefixSummaries(t *testing.T) {
	t.Parallel()
	window, turns, least := apptest.ChooseSize(8_192, 32_768), apptest.ChooseSize(80, 600), apptest.ChooseSize(2, 3)
	fig := apptest.NewTable("thoughts over several summaries, window %d, at most %d turns", window, turns)
	fig.AddRow(append([]any{""}, prefixColumns...)...)
	for _, summary := range []struct{ name, settings string }{
		{"before the messages that stay", "policy: window"},
		{"at the end", "policy: window, min_recent_messages: 1, land_at: 0.05"},
		{"the provider's own", "policy: window, strategy: native"},
	} {
		agent := fmt.Sprintf("name: thinker\nsystem_prompt: You think.\ntools: [calculator]\ncontext: {%s}\n", summary.settings)
		p := playPrefix(t, window, agent, provider.Drop, func(k *prefixTalk) {
			var report core.ContextReport
			var err error
			for k.turn < turns && err == nil && (report.SummaryVersion < least || apptest.IsLong()) {
				k.say(1)
				report, err = client.Call(t.Context(), k.h, ops.GetContext, ops.InSession{SessionID: k.id})
			}
			if err != nil || report.SummaryVersion < least {
				t.Errorf("%s: got the version %d, %v, want %d summaries", summary.name, report.SummaryVersion, err, least)
			}
			if len(report.Thoughts.Dropped) > 0 && summary.name == "the provider's own" {
				t.Errorf("%s: got %+v, want all thoughts kept", summary.name, report.Thoughts)
			}
		})
		fig.AddRow(append([]any{summary.name}, prefixFigures(t, p)...)...)
	}
	fig.Log(t)
}

// prefixTurns is how long the conversations are, a half or a quarter of it.
func prefixTurns() int { return apptest.ChooseSize(8, 80) }

// On models that take a thought only behind the prompt of its making, no prompt is refused
// and no thought is left out that Bobbin sent, whatever changes the prompt: each policy, tools, notes
// on tool loops, edits, branches, another model, recalled passages.
func TestShowPrefix(t *testing.T) {
	t.Parallel()
	fig := apptest.NewTable("providers that refuse or drop thoughts, window 8,192, %d turns", 2*prefixTurns())
	fig.AddRow(append([]any{"", ""}, prefixColumns...)...)
	for n, scene := range prefixScenes {
		for i, policy := range prefixPolicies {
			if i%len(prefixScenes) != n && !apptest.IsLong() {
				continue // in CI each policy has one scene
			}
			mismatch := []provider.Mismatch{provider.Refuse, provider.Drop}[i%2]
			p := playPrefix(t, 8_192, fmt.Sprintf(prefixAgent, policy.settings), mismatch, scene.play)
			fig.AddRow(append([]any{scene.name, policy.name}, prefixFigures(t, p)...)...)
		}
	}
	fig.Log(t)
}

// callsInLoops calls the calculator once for a tool, and eight times one after the other for a loop.
func callsInLoops(r provider.Received) []provider.Call {
	results, question := 0, ""
	for i := len(r.Messages) - 1; i >= 0 && question == ""; i-- {
		switch m := r.Messages[i]; {
		case m.Role == "tool":
			results++
		case m.Role == "user" && !strings.HasPrefix(m.Text, "Notes on the work so far"):
			question = m.Text
		}
	}
	limit := strings.Count(question, " tool ")
	if strings.Contains(question, "loop") {
		limit = 8
	}
	if len(r.Messages) > 0 && strings.Contains(question, "Notes on the work") {
		limit = 2
	}
	if results >= limit {
		return nil
	}
	return []provider.Call{{ID: fmt.Sprintf("call_%d_%d", len(r.Messages), results), Name: "calculator", Arguments: `{"expression": "6 * 7"}`}}
}

// playPrefix plays a conversation with the agent thinker.
func playPrefix(t *testing.T, window int, agent string, mismatch provider.Mismatch, play func(k *prefixTalk)) *provider.Server {
	t.Helper()
	p := apptest.NewProvider(t, provider.Options{
		Record: true, Cache: true, Calls: callsInLoops, Strict: &provider.Strict{Account: "account", Secret: "secret", OnMismatch: mismatch},
	})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), func(c *config.Config) {
		for _, name := range []string{"house", "second"} {
			model := map[string]string{"house": "claude-opus-5-5", "second": "claude-sonnet-5-5"}[name]
			c.Models = append(c.Models, config.Model{
				Name: name, Provider: "anthropic", Model: model, BaseURL: p.URL, ThinkingBudget: 2_048,
				ContextWindow: window, MaxOutputTokens: 2_048,
			})
		}
		c.DefaultLLM = "house"
	}, apptest.WithAgent("thinker", agent))
	k := &prefixTalk{t: t, h: h, writer: apptest.NewWriter(5)}
	k.id = apptest.NewSession(t, h.Client, ops.NewSession{Agent: "thinker", Timezone: "Europe/Vienna"})
	play(k)
	if report, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: k.id}); err != nil || report.Thoughts == nil || report.Thoughts.Contract != "refuses" {
		t.Errorf("got the thoughts %+v in /context, %v", report.Thoughts, err)
	}
	return p
}

func percentOf(n, of int) string { return fmt.Sprintf("%.0f %%", 100*float64(n)/float64(max(of, 1))) }

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
		brief := func(question string) string { return question[:min(len(question), 80)] } // so that the user's messages fill the window
		p := apptest.NewProvider(t, provider.Options{Strict: strict, Say: brief})
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

// check checks that no message is without a place in the prompt or the summary.
func (k *nativeTalk) check() core.ContextReport {
	k.t.Helper()
	report, err := client.Call(k.t.Context(), k.h, ops.GetContext, ops.InSession{SessionID: k.id})
	must.True(k.t, err == nil && report.Coverage.Lost == 0, "got the coverage %+v, %v, want no message lost", report.Coverage, err)
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
			func() {
				changeAgent(t, h.Config, "thinker", thinker(fmt.Sprintf("You think, %d.", n)))
				compare.Contains(t, "behind another version of the agent", "Prompts have the provider's own summary", k.check().SummaryReason)
				k.say("house", 2)
			},
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
		compare.True(k.t, v.Content != "", "version %d has no words", v.Version)
		if versions++; v.Native != nil {
			natives++
		}
	}
	return versions, natives
}
