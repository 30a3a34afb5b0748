package adapters_test

import (
	"cmp"
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/responses"
	"bobbin/tests/compare"
	"bobbin/tests/provider"
)

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
		if k.answer.Reasoning != want {
			t.Errorf("unverified %v: got the reasoning %q, want %q", unverified, k.answer.Reasoning, want)
		}
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
				if !reflect.DeepEqual(k.answer.Dropped, want) {
					t.Errorf("%s: reported %+v, want %+v", question, k.answer.Dropped, want)
				}
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
