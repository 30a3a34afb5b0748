package e2e_test

import (
	"fmt"
	"strings"
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
	if got.Refused > 0 || got.Dropped > 0 || got.Verified == 0 {
		t.Errorf("got %+v, want no thought refused or dropped", got)
	}
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
