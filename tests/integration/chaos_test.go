package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/tests/coretest"
	"bobbin/tests/llmtest"
	"bobbin/tests/seed"
)

// chaos is a model, a summarizer, tools and a user that do whatever they like. Each has random
// numbers of its own: what one does changes nothing for the others.
type chaos struct {
	t                   *testing.T
	count               *tokens.Counter
	model, writer, user *rand.Rand
	mu                  sync.Mutex
	faults              []string // guarded by mu; of the prompts
}

// newModel returns a model of the window that checks every prompt.
func (c *chaos) newModel(name string, window int) *llmtest.Script {
	return llmtest.Scripted(llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
		c.check(req, name, window)
		return c.step(req)
	}}).WithInfo(llm.Info{Name: name, Provider: "scripted", Window: window, MaxOutput: window / 8})
}

// step is what the model does.
func (c *chaos) step(req llm.Request) llmtest.Step {
	words := strings.Fields(strings.Repeat("some words of an answer \x00 \xff ", 1+c.model.IntN(40)))
	fail := func(kind llm.ErrorKind) error {
		return &llm.Error{Kind: kind, Provider: "scripted", Message: "no", Limit: c.model.IntN(2) * 6000, Requested: c.model.IntN(2) * 9000}
	}
	kinds := []llm.ErrorKind{llm.KindContextLength, llm.KindTruncated, llm.KindAuth, llm.KindContentFilter, llm.KindNetwork}
	switch c.model.IntN(12) {
	case 0:
		return llmtest.Fail(fail(kinds[c.model.IntN(len(kinds))]))
	case 1:
		return llmtest.Step{Text: words, Err: fail(kinds[c.model.IntN(len(kinds))])}
	case 2:
		return llmtest.Step{Reasoning: "hm"}
	case 3:
		return llmtest.Step{Text: words, Gate: llmtest.NewGate(), GateAfter: c.model.IntN(4)} // says no more
	case 4, 5, 6, 7:
		names := []string{"dump", "fire", "boom", "hang", "nothing", "", "functions.dump", "grumble"}
		var calls []core.ToolCall
		for range 1 + c.model.IntN(4) {
			calls = append(calls, core.ToolCall{
				ID: []string{"", "c", "d", core.NewID[string]()}[c.model.IntN(4)], Name: names[c.model.IntN(len(names))],
				Arguments: []string{"{}", "", "{\"a\": ", strings.Repeat("long ", 2000)}[c.model.IntN(4)],
			})
		}
		return llmtest.Step{Text: words[:c.model.IntN(2)], ToolCalls: calls, Usage: &core.Usage{InputTokens: c.size(req)}}
	default:
		return llmtest.Step{Text: words, Usage: &core.Usage{InputTokens: c.size(req) * 5 / 4}}
	}
}

// size counts a request as a provider would.
func (c *chaos) size(req llm.Request) int { return (&world{count: c.count}).size(req) }

// check notes what is wrong with a prompt.
func (c *chaos) check(req llm.Request, name string, window int) {
	var faults []string
	// The estimate is corrected by what small prompts taught, in which the words
	// around summaries weigh more than they do in large ones.
	const accuracy = 1.08
	if n := c.size(req) + req.MaxOutputTokens; float64(n) > accuracy*float64(window) {
		faults = append(faults, fmt.Sprintf("prompt and answer have %d tokens", n))
	}
	if len(req.Messages) == 0 || req.Messages[0].Role != core.RoleUser {
		faults = append(faults, "the first message is not a user's")
	}
	var open []string
	seen := map[string]bool{}
	for i, m := range req.Messages {
		if m.Role == core.RoleTool {
			if len(open) == 0 || open[0] != m.ToolCallID {
				faults = append(faults, fmt.Sprintf("message %d is the result of %q, open are %q", i, m.ToolCallID, open))
				continue
			}
			open = open[1:]
			continue
		}
		if len(open) > 0 {
			faults = append(faults, fmt.Sprintf("calls %q have no result", open))
		}
		open = nil
		for _, call := range m.ToolCalls {
			if seen[call.ID] || call.ID == "" || call.Name == "" {
				faults = append(faults, fmt.Sprintf("call %q of %q", call.ID, call.Name))
			}
			seen[call.ID], open = true, append(open, call.ID)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range faults {
		c.faults = append(c.faults, name+": "+f)
	}
}

// tools returns tools of every kind.
func (c *chaos) tools() []tools.Tool {
	return []tools.Tool{fire{}, boom{},
		chaosTool{"dump", func(_ context.Context, arguments string) (string, error) {
			return strings.Repeat("line of it\n", 1+len(arguments)%3*8000), nil
		}},
		chaosTool{"hang", func(ctx context.Context, _ string) (string, error) { <-ctx.Done(); return "", ctx.Err() }},
		chaosTool{"grumble", func(context.Context, string) (string, error) { return "", errors.New("no \x00 \xff way") }},
	}
}

type chaosTool struct {
	name string
	do   func(ctx context.Context, arguments string) (string, error)
}

func (f chaosTool) Spec() llm.ToolSpec {
	return llm.ToolSpec{Name: f.name, Description: "does " + f.name, Parameters: []byte(`{"type":"object","properties":{}}`)}
}
func (f chaosTool) Idempotent() bool { return f.name != "hang" }
func (f chaosTool) Call(ctx context.Context, call tools.Call) (string, error) {
	return f.do(ctx, call.Arguments)
}

// Whatever models, tools, users and operators do, every run
// ends in words, every prompt is valid and fits, and the log can be stored.
func TestChaos(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	for n := range uint64(4) {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			simulate(t, func(t *testing.T) { riot(t, n, func() {}) })
		})
	}
}

// The same, but what a step sets in motion comes to rest before the next step: the seed alone
// decides what happens. With CI's seed, each of these conversations has prompts in which two calls
// would have one id.
func TestChaosStepByStep(t *testing.T) {
	t.Parallel()
	for _, n := range []uint64{4, 5} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			simulate(t, func(t *testing.T) { riot(t, n, synctest.Wait) })
		})
	}
}

// riot is one conversation, with a rest after each step.
func riot(t *testing.T, stream uint64, rest func()) {
	count := tokens.NewCounter()
	c := &chaos{t: t, count: count, model: seed.Rand(t, 3*stream), writer: seed.Rand(t, 3*stream+1), user: seed.Rand(t, 3*stream+2)}
	s := newSettings(8192, llmtest.Scripted(), c.tools()...)
	s.models[""], s.models["large"], s.models["small"] = c.newModel("default", 8192), c.newModel("large", 32_000), c.newModel("small", 3000)
	s.models["writer"] = llmtest.Scripted(llmtest.Step{Repeat: true, From: func(llm.Request) llmtest.Step {
		return []llmtest.Step{{Text: []string{summaryText + " \x00"}}, {}, llmtest.Fail(&llm.Error{Kind: llm.KindOverloaded}), {Gate: llmtest.NewGate()}}[c.writer.IntN(4)]
	}})
	db := coretest.New()
	h := newHouse(t, db, "w", s)
	session := h.session
	var all []core.Run
	for range 30 {
		switch c.user.IntN(8) {
		case 0:
			if len(all) > 0 {
				h.cancel(all[c.user.IntN(len(all))])
			}
		case 1:
			h.stop()
			h = newHouse(t, db, "w", s)
			h.session = session
		case 2:
			model := []string{"", "large", "small", "gone"}[c.user.IntN(4)]
			h.patch(core.SessionPatch{Model: &model})
		case 3:
			<-time.After(time.Duration(c.user.IntN(900)) * time.Second)
		default:
			all = append(all, h.send(strings.TrimSpace(strings.Repeat("word ", 1+c.user.IntN(4)*c.user.IntN(900))), []string{"", "", "large", "small"}[c.user.IntN(4)]))
		}
		rest()
	}
	<-time.After(24 * time.Hour)
	c.verdict(h, session, all)
}

// verdict checks what is left of the conversation.
func (c *chaos) verdict(h *house, session core.Session, all []core.Run) {
	c.t.Helper()
	codes := []string{"model_error", "model_context_length", "model_truncated", "model_auth", "model_content_filter",
		"model_network", "model_empty", "run_timeout", "not_found", "context_floor"}
	for _, run := range all {
		switch got := h.db.Run(run.ID); {
		case !got.Status.Ended():
			c.t.Errorf("run %d is still %s after a day", run.QueueSeq, got.Status)
		case got.Status == core.RunFailed && (got.Error == nil || !slices.Contains(codes, got.Error.Code)):
			c.t.Errorf("run %d failed with %+v", run.QueueSeq, got.Error)
		}
	}
	for _, m := range h.db.Log(session.ID) {
		texts := []string{m.Content, m.ToolCallID, m.ToolName}
		for _, call := range m.ToolCalls {
			texts = append(texts, call.ID, call.Name, call.Arguments)
		}
		for _, text := range texts {
			if core.CleanText(text) != text {
				c.t.Errorf("message %d holds %.60q", m.Seq, text)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.faults[:min(len(c.faults), 5)] {
		c.t.Error(f)
	}
}
