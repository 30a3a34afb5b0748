package adapters_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// thinker is a model of a strict provider, which checks every thought that comes back.
type thinker struct {
	t        *testing.T
	open     func(model string) (llm.Model, error)
	counts   func() provider.Thoughts
	model    string
	req      llm.Request
	answer   llm.Response // the last one
	thoughts int          // in the answers so far
	sent     int          // thoughts in the requests so far
}

// newThinker returns a model of Anthropic.
func newThinker(t *testing.T, strict provider.Strict, model string, thinking int) *thinker {
	t.Helper()
	k := newTalk(t, model)
	k.serveClaude(strict, thinking)
	return k
}

// serveClaude makes another server answer from now on.
func (k *thinker) serveClaude(strict provider.Strict, thinking int) {
	k.t.Helper()
	strict.Account, strict.Secret = cmp.Or(strict.Account, "account"), cmp.Or(strict.Secret, "secret")
	server := must.Get(provider.New(provider.Options{Strict: &strict, Record: true}))(k.t)
	k.t.Cleanup(server.Close)
	k.counts = server.Thoughts
	k.open = func(model string) (llm.Model, error) {
		return anthropic.New(anthropic.Options{Model: model, BaseURL: server.URL, APIKey: key, Thinking: thinking, Info: llm.Info{MaxOutput: 8_192}})
	}
}

// newTalk returns a conversation with a system prompt and a tool.
func newTalk(t *testing.T, model string) *thinker {
	t.Helper()
	return &thinker{t: t, model: model, req: llm.Request{
		System: []string{"Be kind."}, Tools: []llm.ToolSpec{{Name: "calculator", Description: "Calculates."}},
	}}
}

// ask sends a question, and the results of the tool calls that the answers have, until an answer has
// none. The answers go through the types of the log.
func (k *thinker) ask(question string) {
	k.t.Helper()
	k.add(llm.Message{Role: core.RoleUser, Content: question})
	for k.next() {
	}
}

// opened returns the model.
func (k *thinker) opened() llm.Model {
	k.t.Helper()
	return must.Get(k.open(k.model))(k.t)
}

// next adds the answer to the messages so far, and the results of its tool calls; it reports
// whether there are any.
func (k *thinker) next() bool {
	k.t.Helper()
	m := k.opened()
	for _, message := range k.req.Messages {
		k.sent += thoughtsOf(message.Parts, m.Info().ThoughtOrigin)
	}
	res, err := llmtest.Collect(k.t, m, k.req)
	if err != nil {
		k.t.Fatalf("message %d: %v", len(k.req.Messages), err)
	}
	k.answer = res
	k.add(llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls})
	k.thoughts += thoughtsOf(res.Parts, m.Info().ThoughtOrigin)
	for _, call := range res.ToolCalls {
		k.add(llm.Message{Role: core.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "42"})
	}
	return len(res.ToolCalls) > 0
}

// thoughtsOf returns how many of the parts are thoughts that go back to a model.
func thoughtsOf(parts []core.Part, origin string) (n int) {
	for _, p := range parts {
		if p.Type == core.PartReasoning && p.Signature != "" && p.Origin == origin {
			n++
		}
	}
	return n
}

// wantAllValid checks that the model got every thought that was sent, without a second request.
func (k *thinker) wantAllValid() {
	k.t.Helper()
	if got, want := k.counts(), (provider.Thoughts{Verified: k.sent}); got != want || k.sent == 0 {
		k.t.Errorf("got %+v of %d thoughts, want %+v", got, k.thoughts, want)
	}
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
			k.wantAllValid()
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

// Where the model is known to check, the provider leaves the thoughts behind a change out and says so: no
// request is refused, also to a model that thinks without being asked.
func TestStrictDropsAndReports(t *testing.T) {
	t.Parallel()
	strict := provider.Strict{AlwaysThinks: true}
	system := func(k *thinker) { k.req.System = []string{"Be brief."} }
	for name, tt := range map[string]struct {
		model    string
		thinking int
		change   func(k *thinker)
		want     map[llm.DropReason]int
	}{
		"system":           {"claude-opus-5-5", 2_048, system, map[llm.DropReason]int{llm.DropPrefix: 2}},
		"unasked thoughts": {"claude-fable-5-1", 0, system, map[llm.DropReason]int{llm.DropPrefix: 2}},
		"tools":            {"claude-opus-5-5", 2_048, func(k *thinker) { k.req.Tools[0].Description = "Counts." }, map[llm.DropReason]int{llm.DropPrefix: 2}},
		"result of a tool": {"claude-opus-5-5", 2_048, func(k *thinker) { k.req.Messages[2].Content = "[masked]" }, map[llm.DropReason]int{llm.DropPrefix: 1}},
		"another account": {"claude-opus-5-5", 2_048, func(k *thinker) { k.serveClaude(provider.Strict{AlwaysThinks: true, Account: "another"}, 2_048) },
			map[llm.DropReason]int{llm.DropOrganization: 2}},
	} {
		k := newThinker(t, strict, tt.model, tt.thinking)
		k.req.ChecksPrefix = true
		k.ask("use a tool")
		tt.change(k)
		k.add(llm.Message{Role: core.RoleUser, Content: "bye"})
		k.next()
		want := &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: tt.want}
		if got := k.counts(); got.Refused > 0 || !reflect.DeepEqual(k.answer.Dropped, want) {
			t.Errorf("%s: got %+v, reported %+v, want %+v", name, got, k.answer.Dropped, want)
		}
	}
}

const gpt = "gpt-6.2-sol"

// newResponsesThinker returns a model of OpenAI's Responses API.
func newResponsesThinker(t *testing.T, strict provider.Strict, model string) *thinker {
	t.Helper()
	k := newTalk(t, model)
	k.serveResponses(strict)
	return k
}

// serveResponses makes another server answer from now on.
func (k *thinker) serveResponses(strict provider.Strict) {
	k.t.Helper()
	strict.Account = cmp.Or(strict.Account, "account")
	strict.Secret = "secret"
	handler := provider.NewResponsesHandler(strict)
	server := httptest.NewServer(handler)
	k.t.Cleanup(server.Close)
	k.counts = handler.Thoughts
	opened := map[string]llm.Model{}
	k.open = func(model string) (m llm.Model, err error) {
		if opened[model] == nil {
			opened[model], err = responses.New(responses.Options{Model: model, BaseURL: server.URL + "/v1", APIKey: key, Info: llm.Info{MaxOutput: 8_192, Images: true}})
		}
		return opened[model], err
	}
}

// Conversations of many turns over the Responses API lose no reasoning that goes back, and cause no
// second request.
func TestStrictResponsesConversations(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strict provider.Strict
		model  string
		talk   func(k *thinker)
	}{
		"instructions after the items":        {provider.Strict{}, gpt, talk},
		"instructions before the items":       {provider.Strict{}, "gpt-5.6", talk},
		"an older model":                      {provider.Strict{}, "o4-mini", talk},
		"the order of keys":                   {provider.Strict{KeyOrder: true}, gpt, talk},
		"comments and reasoning before calls": {provider.Strict{}, gpt, talkInSteps},
		"images":                              {provider.Strict{}, gpt, talkAboutImages},
		"structured output":                   {provider.Strict{}, gpt, talkInJSON},
		"another model for a turn, and back":  {provider.Strict{}, gpt, talkToAnotherGPT},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newResponsesThinker(t, tt.strict, tt.model)
			tt.talk(k)
			k.wantAllValid()
		})
	}
}

// Users see summaries of the reasoning, text by text, unless the organization may not have them: it
// is asked once, and misses nothing else.
func TestStrictResponsesSummaries(t *testing.T) {
	t.Parallel()
	for _, unverified := range []bool{false, true} {
		k := newResponsesThinker(t, provider.Strict{Unverified: unverified}, gpt)
		talk(k)
		k.wantAllValid()
		want := "There are 22 items.\n\nThe last one counts."
		if unverified {
			want = ""
		}
		compare.Equal(t, fmt.Sprintf("unverified %v: reasoning", unverified), want, k.answer.Reasoning)
	}
}

// talkInSteps has answers with a comment and reasoning between its pieces.
func talkInSteps(k *thinker) {
	for _, question := range []string{"use a tool in steps", "thanks", "steps with the tool again", "bye"} {
		k.ask(question)
	}
	if got := len(k.req.Messages[1].Parts); got < 3 || k.req.Messages[1].Content != "I use calculator." {
		k.t.Errorf("got the answer %+v, want reasoning before and after the comment", k.req.Messages[1])
	}
}

// talkAboutImages has questions with an image and with a PDF.
func talkAboutImages(k *thinker) {
	for _, part := range []core.Part{{Type: core.PartImage, MediaType: "image/png"}, {Type: core.PartFile, Name: "a.pdf"}} {
		k.add(llm.Message{Role: core.RoleUser, Content: "Look.", Media: []llm.Media{{Part: part, Data: []byte("data")}}})
		k.next()
		k.ask("use a tool")
	}
}

// talkInJSON has answers that follow a schema.
func talkInJSON(k *thinker) {
	k.req.ResponseFormat = &core.ResponseFormat{Type: core.FormatJSONSchema, Schema: json.RawMessage(`{"type":"object","properties":{"b":{},"answer":{"type":"string"}}}`)}
	talk(k)
	compare.Equal(k.t, "k.answer.Text", `{"answer":"answer to: bye"}`, k.answer.Text)
}

// talkToAnotherGPT has a turn with another model in the middle.
func talkToAnotherGPT(k *thinker) {
	k.ask("use a tool in steps")
	k.model = "gpt-6.3"
	k.ask("use a tool of yours in steps")
	k.model = gpt
	k.ask("use a tool again")
	k.ask("bye")
}

// Reasoning behind a changed prompt, and that of another account or model, is dropped by the API and
// reported; the reasoning of the answer to it stays valid as long as the prompt is the same.
func TestStrictResponsesDropsAndReports(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(k *thinker)
		want   map[llm.DropReason]int
	}{
		"none":                       {func(*thinker) {}, nil},
		"instructions":               {func(k *thinker) { k.req.System = []string{"Be brief."} }, nil},
		"tools":                      {func(k *thinker) { k.req.Tools = k.req.Tools[:0] }, map[llm.DropReason]int{llm.DropPrefix: 4}},
		"result of a tool":           {func(k *thinker) { k.req.Messages[4].Content = "[masked]" }, map[llm.DropReason]int{llm.DropPrefix: 1}},
		"another account":            {func(k *thinker) { k.serveResponses(provider.Strict{Account: "another"}) }, map[llm.DropReason]int{llm.DropOrganization: 4}},
		"another model of that name": {func(k *thinker) { k.rename("gpt-6.3") }, map[llm.DropReason]int{llm.DropModel: 4}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newResponsesThinker(t, provider.Strict{}, gpt)
			k.ask("hello")
			k.ask("use a tool in steps")
			tt.change(k)
			before := k.counts()
			var want *llm.DroppedThoughts
			dropped := 0
			if tt.want != nil {
				want = &llm.DroppedThoughts{Contract: llm.PrefixDrops, Reasons: tt.want}
				for _, n := range tt.want {
					dropped += n
				}
			}
			for _, question := range []string{"bye", "good bye"} {
				k.ask(question)
				compare.True(t, reflect.DeepEqual(k.answer.Dropped, want), "%s: reported %+v, want %+v", question, k.answer.Dropped, want)
			}
			if got := k.counts(); got.Refused > 0 || got.Dropped-before.Dropped != 2*dropped {
				t.Errorf("got %+v after %+v, want %d dropped at each request", got, before, dropped)
			}
		})
	}
}

// rename makes another model the one that the thoughts are said to be of, as behind an alias.
func (k *thinker) rename(model string) {
	k.model = model
	for i, m := range k.req.Messages {
		m.Parts = append([]core.Part(nil), m.Parts...)
		for j := range m.Parts {
			m.Parts[j].Origin = strings.Replace(m.Parts[j].Origin, gpt, model, 1)
		}
		k.req.Messages[i].Parts = m.Parts
	}
}
