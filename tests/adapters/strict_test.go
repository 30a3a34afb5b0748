package adapters_test

import (
	"reflect"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/provider"
)

// thinker is a model of a strict provider, which checks every thought that comes back.
type thinker struct {
	t        *testing.T
	server   *provider.Server
	model    string
	thinking int
	req      llm.Request
	thoughts int                  // in the answers so far
	dropped  *llm.DroppedThoughts // of the last answer
}

func newThinker(t *testing.T, strict provider.Strict, model string, thinking int) *thinker {
	t.Helper()
	strict.Account, strict.Secret = "account", "secret"
	server, err := provider.New(provider.Options{Strict: &strict, Record: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return &thinker{t: t, server: server, model: model, thinking: thinking, req: llm.Request{
		System: []string{"Be kind."}, Tools: []llm.ToolSpec{{Name: "calculator", Description: "Calculates."}},
	}}
}

// ask sends a question, and the results of the tool calls that the answers have, until an answer has
// none. The answers go through the types of the log.
func (k *thinker) ask(question string) {
	k.t.Helper()
	k.add(llm.Message{Role: core.RoleUser, Content: question})
	for k.answer() {
	}
}

// answer adds the answer to the messages so far, and the results of its tool calls; it reports
// whether there are any.
func (k *thinker) answer() bool {
	k.t.Helper()
	m, err := anthropic.New(anthropic.Options{Model: k.model, BaseURL: k.server.URL, APIKey: key, Thinking: k.thinking, Info: llm.Info{MaxOutput: 8_192}})
	if err != nil {
		k.t.Fatal(err)
	}
	res, err := llm.Collect(m.Stream(k.t.Context(), k.req), nil)
	if err != nil {
		k.t.Fatalf("message %d: %v", len(k.req.Messages), err)
	}
	k.dropped = res.Dropped
	k.add(llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls})
	for _, p := range res.Parts {
		if p.Type == "reasoning" {
			k.thoughts++
		}
	}
	for _, call := range res.ToolCalls {
		k.add(llm.Message{Role: core.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "42"})
	}
	return len(res.ToolCalls) > 0
}

func (k *thinker) add(m llm.Message) { k.req.Messages = append(k.req.Messages, m) }

// Conversations of many turns with a strict provider lose no thought that goes back, and cause no
// second request.
func TestStrictConversations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strict   provider.Strict
		model    string
		thinking int
		talk     func(k *thinker)
	}{
		"budget":                             {provider.Strict{}, "claude-sonnet-4-5", 2_048, talk},
		"adaptive":                           {provider.Strict{}, "claude-opus-5-5", 2_048, talk},
		"redacted":                           {provider.Strict{Redacted: true}, "claude-opus-5-5", 2_048, talk},
		"a model that always thinks":         {provider.Strict{AlwaysThinks: true}, "claude-fable-5-1", 0, talk},
		"an account that drops":              {provider.Strict{OnMismatch: provider.Drop}, "claude-opus-5-5", 2_048, talk},
		"the order of keys":                  {provider.Strict{KeyOrder: true}, "claude-opus-5-5", 2_048, talk},
		"another model for a turn, and back": {provider.Strict{}, "claude-opus-5-5", 2_048, talkToAnother},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newThinker(t, tt.strict, tt.model, tt.thinking)
			tt.talk(k)
			got := k.server.Thoughts()
			if k.thoughts == 0 || got.Verified == 0 || got.Dropped > 0 || got.Refused > 0 {
				t.Errorf("got %+v of %d thoughts, want all that go back verified", got, k.thoughts)
			}
		})
	}
}

// talk has turns with and without tool calls.
func talk(k *thinker) {
	for _, question := range []string{"hello", "use a tool", "thanks", "use the tool again", "and more", "bye"} {
		k.ask(question)
	}
}

// talkToAnother has a turn with another model in the middle.
func talkToAnother(k *thinker) {
	k.ask("use a tool")
	before := k.model
	k.model = "claude-sonnet-5-5"
	k.ask("use a tool of yours")
	k.model = before
	k.ask("use a tool again")
	k.ask("bye")
}

// A changed prefix costs the thoughts, and one more request, but not the answer.
func TestStrictChangedPrefix(t *testing.T) {
	t.Parallel()
	k := newThinker(t, provider.Strict{}, "claude-opus-5-5", 2_048)
	k.ask("use a tool")
	k.req.System = []string{"Be brief."}
	k.ask("bye")
	if got, want := k.server.Thoughts(), (provider.Thoughts{Verified: 1, Refused: 1}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Where the model is known to check, the provider leaves the thoughts out and says so: no request is
// refused, also to a model that thinks without being asked.
func TestStrictDropsAndReports(t *testing.T) {
	t.Parallel()
	for model, thinking := range map[string]int{"claude-opus-5-5": 2_048, "claude-fable-5-1": 0} {
		k := newThinker(t, provider.Strict{AlwaysThinks: true}, model, thinking)
		k.req.ChecksPrefix = true
		k.ask("use a tool")
		k.req.System = []string{"Be brief."}
		k.add(llm.Message{Role: core.RoleUser, Content: "bye"})
		k.answer()
		if got := k.server.Thoughts(); got.Refused > 0 || got.Dropped != 2 {
			t.Errorf("%s: got %+v, want two thoughts dropped", model, got)
		}
		if want := (&llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: map[llm.DropReason]int{llm.DropPrefix: 2}}); !reflect.DeepEqual(k.dropped, want) {
			t.Errorf("%s: reported %+v, want %+v", model, k.dropped, want)
		}
	}
}

// Every thought goes back at every request, also those without tool calls.
func TestStrictAllThoughtsGoBack(t *testing.T) {
	t.Parallel()
	k := newThinker(t, provider.Strict{}, "claude-opus-5-5", 2_048)
	sent := 0
	for _, question := range []string{"hello", "use a tool", "thanks", "use the tool again", "bye"} {
		k.add(llm.Message{Role: core.RoleUser, Content: question})
		for again := true; again; {
			sent += k.thoughts
			again = k.answer()
		}
	}
	if got, want := k.server.Thoughts(), (provider.Thoughts{Verified: sent}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
