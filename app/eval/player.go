package eval

import (
	"context"
	"iter"
	"sync"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Player is the model that answers as a recording says, and measures what it is
// sent. It tells as its usage what the prompt has by the model table, as a provider
// would. Safe for concurrent use.
type Player struct {
	info  llm.Info
	meter *meter

	mu         sync.Mutex
	steps      []Step      // guarded by mu; what is still to be answered
	prompts    []Prompt    // guarded by mu; since the last Load
	fixed      int         // guarded by mu; cl100k_base tokens of the first prompt besides the conversation
	request    llm.Request // guarded by mu; the last one
	sent       bool        // guarded by mu; a prompt was measured
	everything int         // guarded by mu; cl100k_base tokens of all that was said so far
}

// NewPlayer returns a Player that stands in for the model of this description.
func NewPlayer(info llm.Info, count llm.TokenCounter) *Player {
	return &Player{info: info, meter: newMeter(count, info.PriorFactor)}
}

// Info describes the model that is stood in for.
func (p *Player) Info() llm.Info { return p.info }

// loadAnswers sets what is answered next, to a question that was counted with heard.
func (p *Player) loadAnswers(steps []Step) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.steps, p.prompts = steps, nil
}

// countHeard counts messages as said.
func (p *Player) countHeard(messages ...core.Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range messages {
		p.everything += p.meter.count.Message(m)
	}
}

// takePrompts returns the prompts since load, and how many answers were not asked for.
func (p *Player) takePrompts() (prompts []Prompt, left int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.prompts, len(p.steps)
}

// lastRequest returns the last request.
func (p *Player) lastRequest() llm.Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.request
}

// Stream gives the next answer.
func (p *Player) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		step, prompt, ok := p.nextAnswer(req)
		if !ok {
			yield(llm.Delta{}, &llm.Error{Kind: llm.KindInvalid, Provider: p.info.Provider, Message: "the recording has no other answer"})
			return
		}
		m := step.Answer
		var out []llm.Delta
		for _, part := range m.Parts {
			if part.Type == "reasoning" {
				out = append(out, llm.Delta{Reasoning: part.Text})
			}
		}
		if m.Content != "" {
			out = append(out, llm.Delta{Text: m.Content})
		}
		for i, c := range m.ToolCalls {
			out = append(out, llm.Delta{ToolCall: &llm.ToolCallDelta{
				Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments, Signature: c.Signature,
			}})
		}
		for _, d := range out {
			if ctx.Err() != nil {
				yield(llm.Delta{}, llm.CanceledError(ctx, p.info.Provider))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
		finish := core.FinishStop
		if len(step.Answer.ToolCalls) > 0 {
			finish = core.FinishToolCalls
		}
		said := p.meter.modelTokens(p.meter.count.Message(step.Answer))
		yield(llm.Delta{Finish: finish, Usage: &core.Usage{InputTokens: prompt.Tokens, OutputTokens: said}}, nil)
	}
}

// nextAnswer measures the prompt and takes the answer to it.
func (p *Player) nextAnswer(req llm.Request) (Step, Prompt, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.steps) == 0 {
		return Step{}, Prompt{}, false
	}
	prompt, fixed := p.meter.measurePrompt(req)
	if !p.sent {
		p.sent, p.fixed = true, fixed
	}
	prompt.Everything = p.meter.modelTokens(p.fixed + p.everything)
	p.prompts, p.request = append(p.prompts, prompt), req
	step := p.steps[0]
	p.steps = p.steps[1:]
	p.everything += p.meter.count.Message(step.Answer)
	for _, r := range step.Results {
		p.everything += p.meter.count.Message(r)
	}
	return step, prompt, true
}
