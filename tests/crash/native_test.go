package crash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/provider"
)

// gate holds the first request that passes a point until it is opened.
type gate struct {
	reached, opened chan struct{}
	once            sync.Once
}

func newGate(t *testing.T) *gate {
	g := &gate{reached: make(chan struct{}), opened: make(chan struct{})}
	t.Cleanup(g.open)
	return g
}

func (g *gate) open() { g.once.Do(func() { close(g.opened) }) }

// pass is what a provider calls at the point.
func (g *gate) pass() {
	select {
	case g.reached <- struct{}{}:
		<-g.opened
	case <-g.opened:
	}
}

// TestKilledBetweenCompactionAndWords: the provider has written its own compaction, the words of the
// same version are not there yet, or the other way round, and the process is killed. No message is
// without a place then, no version without words, and the conversation goes on.
func TestKilledBetweenCompactionAndWords(t *testing.T) {
	t.Parallel()
	for name, holdCompaction := range map[string]bool{"compaction first": false, "words first": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlace(t, func(t *testing.T, p place) { killBetween(t, p, holdCompaction) })
		})
	}
}

// killBetween kills while the compaction is held, or else while the words are.
func killBetween(t *testing.T, p place, holdCompaction bool) {
	words, compaction := newGate(t), newGate(t)
	writer, err := provider.New(provider.Options{At: func(at provider.Point, a provider.Asked) {
		if at == provider.PointSummary && !holdCompaction {
			words.pass()
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(writer.Close)
	house, err := provider.New(provider.Options{
		Strict: &provider.Strict{Account: "account", Secret: "secret"},
		At: func(at provider.Point, a provider.Asked) {
			if at == provider.PointSummary && holdCompaction {
				compaction.pass()
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(house.Close)
	b := newBobbin(t, p, writer.URL)
	b.configure(t, fmt.Sprintf("  - name: house\n    provider: anthropic\n    model: claude-opus-5-5\n    base_url: %s\n    api_key_env: PROVIDER_KEY\n"+
		"    thinking_budget: 1024\n    context_window: 8192\n    max_output_tokens: 2048\n", house.URL))
	writeAgent(t, p, "thinker", "name: thinker\nsystem_prompt: You think.\nmodel: house\ntools: [search_history]\ncontext: {strategy: native, summary_model: small, timing: inline}\n")
	b.start(t)
	c := b.client(t)
	session, err := c.CreateSession(t.Context(), core.Session{Agent: "thinker"})
	if err != nil {
		t.Fatal(err)
	}
	w := watchRaw(t, b, session.ID)
	const messages = 14
	for n := range messages {
		content := fmt.Sprintf("Part %d of the report: %s", n, strings.Repeat(fmt.Sprintf("the harbor of Trieste had %d ships that day. ", 100+n), 40))
		if _, err := c.SendAsync(t.Context(), core.SendMessage{SessionID: session.ID, Content: content, ClientMessageID: fmt.Sprint(n)}); err != nil {
			t.Fatal(err)
		}
	}
	held := words
	if holdCompaction {
		held = compaction
	}
	<-held.reached
	b.kill()
	held.open()
	b.start(t)
	ended := 0
	w.await(t, "the end of all runs", func(f frame) bool {
		if f.event == core.EventRunSucceeded {
			ended++
		}
		return ended == messages
	})
	report, err := c.Context(t.Context(), session.ID)
	if err != nil || report.Coverage.Lost != 0 || report.Coverage.Messages != 2*messages {
		t.Errorf("got the coverage %+v, %v, want all %d messages in the prompt or the summary", report.Coverage, err, 2*messages)
	}
	page, err := c.Summaries(t.Context(), session.ID, core.PageQuery{Limit: 100})
	if err != nil || len(page.Items) == 0 {
		t.Fatalf("got %d versions of the summary, %v, want some", len(page.Items), err)
	}
	natives := 0
	for _, v := range page.Items {
		if v.Content == "" {
			t.Errorf("version %d has no words", v.Version)
		}
		if v.Native != nil {
			natives++
		}
	}
	if natives == 0 || house.Thoughts().Refused > 0 {
		t.Errorf("got %d native summaries and %+v, want some and no refusal", natives, house.Thoughts())
	}
	b.stop(t)
}

// writeAgent writes the file of an agent.
func writeAgent(t *testing.T, p place, name, text string) {
	t.Helper()
	dir := filepath.Join(p.dataDir, "agents")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
