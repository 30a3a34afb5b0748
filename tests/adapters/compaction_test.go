package adapters_test

import (
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/provider"
)

// newCompacting returns a model that writes compactions, of a provider that checks those that come back.
func newCompacting(t *testing.T) *thinker {
	t.Helper()
	return newThinker(t, provider.Strict{}, "claude-opus-5-5", 2_048)
}

// compact returns the compaction of the messages so far.
func (k *thinker) compact() core.Part {
	k.t.Helper()
	req := k.req
	req.Compact = true
	res, err := llmtest.Collect(k.t, k.opened(), req)
	if err != nil || res.Compaction == nil || res.Finish != core.FinishStop || res.Text != "" || len(res.Parts) > 0 {
		k.t.Fatalf("got %+v, %v, want a compaction", res, err)
	}
	if res.Usage == nil || res.Usage.InputTokens == 0 || res.Usage.OutputTokens == 0 {
		k.t.Errorf("got the usage %+v, want what the compaction cost", res.Usage)
	}
	return *res.Compaction
}

// replace puts the compaction in the place of the first n messages.
func (k *thinker) replace(n int, compaction core.Part) {
	first := llm.Message{Role: core.RoleUser, Parts: []core.Part{compaction}}
	k.req.Messages = append([]llm.Message{first}, k.req.Messages[n:]...)
}

// A compaction takes the place of the messages that it summarizes, while the conversation goes on:
// the turns behind it keep their thoughts, through a second one, too.
func TestCompaction(t *testing.T) {
	t.Parallel()
	k := newCompacting(t)
	k.ask("hello")
	for range 2 {
		k.add(llm.Message{Role: core.RoleUser, Content: "use a tool"})
		covered, compaction := len(k.req.Messages), k.compact()
		for k.next() { // goes on with the whole history
		}
		k.replace(covered, compaction)
		before := k.counts().Verified
		k.ask("bye")
		if got := k.counts(); got.Verified-before < 2 || got.Dropped > 0 || got.Refused > 0 {
			t.Errorf("got %+v, want the two kept thoughts verified", got)
		}
	}
	if given, _ := k.req.SplitCompaction(); given.Text == "" || given.Signature == "" || given.Origin != k.opened().Info().ThoughtOrigin {
		t.Errorf("got %+v", given)
	}
}

// What a provider does not take back is an error of its own kind, after one request.
func TestCompactionRefused(t *testing.T) {
	t.Parallel()
	asItIs := func(*core.Part) {}
	for name, tt := range map[string]struct {
		strict provider.Strict
		change func(p *core.Part)
	}{
		"a blob that is refused": {provider.Strict{RefusesBlob: func(n int) bool { return n == 1 }}, asItIs},
		"forged":                 {provider.Strict{Secret: "another secret"}, asItIs},
		"another account":        {provider.Strict{Account: "b"}, asItIs},
		"truncated":              {provider.Strict{}, func(p *core.Part) { p.Signature = p.Signature[:len(p.Signature)/2] }},
		"without a signature":    {provider.Strict{}, func(p *core.Part) { p.Signature = "" }},
		"4 MiB":                  {provider.Strict{}, func(p *core.Part) { p.Signature = strings.Repeat("x", 4<<20) }},
		"another text":           {provider.Strict{}, func(p *core.Part) { p.Text += "." }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newCompacting(t)
			k.add(llm.Message{Role: core.RoleUser, Content: "hello"})
			covered, compaction := len(k.req.Messages), k.compact()
			k.next()
			k.add(llm.Message{Role: core.RoleUser, Content: "bye"})
			whole := slices.Clone(k.req.Messages)
			k.serveClaude(tt.strict, 2_048)
			tt.change(&compaction)
			k.replace(covered, compaction)
			if _, err := llmtest.Collect(t, k.opened(), k.req); !llm.IsKind(err, llm.KindCompactionRefused) {
				t.Errorf("got %v, want that the compaction is refused", err)
			}
			compare.Equal(t, "refused requests: want one", 1, k.counts().Refused)
			k.req.Messages = whole
			k.req = k.req.WithoutThoughts()
			k.next() // the plain history is taken
		})
	}
}
