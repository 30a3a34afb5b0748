package adapters_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/anthropic"
	"bobbin/tests/provider"
)

// compacting is a conversation with a provider that writes compactions and checks those that come back.
type compacting struct {
	t        *testing.T
	model    llm.Model
	req      llm.Request
	thoughts func() provider.Thoughts
}

func newCompacting(t *testing.T, strict provider.Strict) *compacting {
	t.Helper()
	k := &compacting{t: t, req: llm.Request{System: []string{"Be kind."}, Tools: []llm.ToolSpec{{Name: "calculator"}}}}
	k.goTo(strict)
	return k
}

// goTo goes on with a provider of these rules.
func (k *compacting) goTo(strict provider.Strict) {
	k.t.Helper()
	server, err := provider.New(provider.Options{Strict: &strict})
	if err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(server.Close)
	k.thoughts = server.Thoughts
	k.model, err = anthropic.New(anthropic.Options{Model: "claude-opus-5-5", BaseURL: server.URL, APIKey: key, Thinking: 2_048, Info: llm.Info{MaxOutput: 8_192}})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *compacting) send(req llm.Request) (llm.Response, error) {
	k.t.Helper()
	return llm.Collect(k.model.Stream(k.t.Context(), req), nil)
}

func (k *compacting) add(m llm.Message) { k.req.Messages = append(k.req.Messages, m) }

// ask adds a question.
func (k *compacting) ask(question string) {
	k.add(llm.Message{Role: core.RoleUser, Content: question})
}

// answer adds the answer, those to its tool calls, and their results.
func (k *compacting) answer() {
	k.t.Helper()
	for again := true; again; {
		res, err := k.send(k.req)
		if err != nil {
			k.t.Fatalf("message %d: %v", len(k.req.Messages), err)
		}
		k.add(llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls})
		for _, call := range res.ToolCalls {
			k.add(llm.Message{Role: core.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "42"})
		}
		again = len(res.ToolCalls) > 0
	}
}

// compact returns the compaction of the messages so far.
func (k *compacting) compact() core.Part {
	k.t.Helper()
	req := k.req
	req.Compact = true
	res, err := k.send(req)
	if err != nil || res.Compaction == nil || res.Finish != core.FinishStop || res.Text != "" || len(res.Parts) > 0 {
		k.t.Fatalf("got %+v, %v, want a compaction", res, err)
	}
	if res.Usage == nil || res.Usage.InputTokens == 0 || res.Usage.OutputTokens == 0 {
		k.t.Errorf("got the usage %+v, want what the compaction cost", res.Usage)
	}
	return *res.Compaction
}

// replace puts the compaction in the place of the first n messages.
func (k *compacting) replace(n int, compaction core.Part) {
	first := llm.Message{Role: core.RoleUser, Parts: []core.Part{compaction}}
	k.req.Messages = append([]llm.Message{first}, k.req.Messages[n:]...)
}

func account(name string) provider.Strict { return provider.Strict{Account: name, Secret: "secret"} }

// A compaction takes the place of the messages that it summarizes, while the conversation goes on:
// the turns behind it keep their thoughts, through a second one, too.
func TestCompaction(t *testing.T) {
	t.Parallel()
	k := newCompacting(t, account("a"))
	k.ask("hello")
	k.answer()
	for range 2 {
		k.ask("use a tool")
		covered, compaction := len(k.req.Messages), k.compact()
		k.answer() // goes on with the whole history
		k.replace(covered, compaction)
		before := k.thoughts().Verified
		k.ask("bye")
		k.answer()
		if got := k.thoughts(); got.Verified-before < 2 || got.Dropped > 0 || got.Refused > 0 {
			t.Errorf("got %+v, want the two kept thoughts verified", got)
		}
	}
	if given, _ := k.req.SplitCompaction(); given.Text == "" || given.Signature == "" || given.Origin != k.model.Info().ThoughtOrigin {
		t.Errorf("got %+v", given)
	}
}

// What a provider does not take back is an error of its own kind, after one request.
func TestCompactionRefused(t *testing.T) {
	t.Parallel()
	forged := account("a")
	forged.Secret = "another secret"
	once := account("a")
	once.RefusesBlob = func(n int) bool { return n == 1 }
	asItIs := func(*core.Part) {}
	for name, tt := range map[string]struct {
		strict provider.Strict
		change func(p *core.Part)
	}{
		"a blob that is refused": {once, asItIs},
		"forged":                 {forged, asItIs},
		"another account":        {account("b"), asItIs},
		"truncated":              {account("a"), func(p *core.Part) { p.Signature = p.Signature[:len(p.Signature)/2] }},
		"without a signature":    {account("a"), func(p *core.Part) { p.Signature = "" }},
		"4 MiB":                  {account("a"), func(p *core.Part) { p.Signature = strings.Repeat("x", 4<<20) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newCompacting(t, account("a"))
			k.ask("hello")
			covered, compaction := len(k.req.Messages), k.compact()
			k.answer()
			k.ask("bye")
			whole := slices.Clone(k.req.Messages)
			k.goTo(tt.strict)
			tt.change(&compaction)
			k.replace(covered, compaction)
			_, err := k.send(k.req)
			if !llm.IsKind(err, llm.KindCompactionRefused) {
				t.Errorf("got %v, want that the compaction is refused", err)
			}
			if got := k.thoughts(); got.Refused != 1 {
				t.Errorf("got %d refused requests, want one", got.Refused)
			}
			k.req.Messages = whole
			k.req = k.req.WithoutThoughts()
			k.answer() // the plain history is taken
		})
	}
}

// A text that differs from what was signed is refused, too.
func TestCompactionWithAnotherText(t *testing.T) {
	t.Parallel()
	k := newCompacting(t, account("a"))
	k.ask("hello")
	compaction := k.compact()
	compaction.Text += "."
	k.replace(1, compaction)
	k.ask("bye")
	if _, err := k.send(k.req); !llm.IsKind(err, llm.KindCompactionRefused) {
		t.Errorf("got %v", err)
	}
}

// A compaction that comes back empty is an error with its price.
func TestEmptyCompaction(t *testing.T) {
	t.Parallel()
	for _, stop := range []string{"max_tokens", "refusal", "end_turn"} {
		strict := account("a")
		strict.CompactionStop = stop
		k := newCompacting(t, strict)
		k.ask("hello")
		req := k.req
		req.Compact = true
		res, err := k.send(req)
		if !llm.IsKind(err, llm.KindInvalid) || res.Compaction != nil || res.Usage == nil || res.Usage.InputTokens == 0 {
			t.Errorf("%s: got %+v, %v, want an error and the usage", stop, res, err)
		}
	}
}
