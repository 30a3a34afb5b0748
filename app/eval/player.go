package eval

import (
	"context"
	"encoding/json"
	"iter"
	"math"
	"regexp"
	"strings"
	"sync"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
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

// Prompt is the size of one prompt. Tokens are the model's.
type Prompt struct {
	Tokens       int `json:"tokens"`
	Bytes        int `json:"bytes"`         // of its texts: tools, system blocks, messages
	CachedTokens int `json:"cached_tokens"` // of the beginning that it has in common with the prompt before
	CachedBytes  int `json:"cached_bytes"`
	Everything   int `json:"everything"` // tokens of the prompt that holds everything said so far
}

// meter measures the prompts of one conversation, one after the other.
type meter struct {
	count  llm.TokenCounter
	factor float64 // the model's tokens for one of cl100k_base
	before []block
}

// block is a piece of a prompt, in the order in which providers cache: the tools,
// the system blocks, the messages.
type block struct {
	text   string
	tokens int // cl100k_base
}

func newMeter(count llm.TokenCounter, factor float64) *meter {
	if !(factor > 0) {
		factor = 1
	}
	return &meter{count: count, factor: factor}
}

// modelTokens returns the model's tokens, rounded up.
func (m *meter) modelTokens(tokens int) int { return int(math.Ceil(float64(tokens) * m.factor)) }

// measurePrompt returns the size of the next prompt, without Everything; fixed is what of
// it is not the conversation: tools, system blocks and the list itself, in
// cl100k_base tokens.
func (m *meter) measurePrompt(req llm.Request) (p Prompt, fixed int) {
	blocks, fixed := m.promptBlocks(req)
	total, cached, same := 0, 0.0, true
	for i, b := range blocks {
		total += b.tokens
		p.Bytes += len(b.text)
		if !same || i >= len(m.before) {
			continue
		}
		before, n := m.before[i].text, 0
		for n < len(b.text) && n < len(before) && b.text[n] == before[n] {
			n++
		}
		same = b.text == before
		p.CachedBytes += n
		if len(b.text) > 0 {
			cached += float64(b.tokens) * float64(n) / float64(len(b.text))
		}
	}
	m.before = blocks
	p.Tokens = m.modelTokens(total + tokens.ListOverhead)
	p.CachedTokens = min(int(cached*m.factor), p.Tokens)
	return p, fixed
}

// promptBlocks returns the pieces of a prompt.
func (m *meter) promptBlocks(req llm.Request) (blocks []block, fixed int) {
	if len(req.Tools) > 0 {
		raw, err := json.Marshal(req.Tools)
		if err != nil {
			raw = nil // a schema that is no JSON: its tokens count all the same
		}
		blocks = append(blocks, block{string(raw), m.count.Tools(req.Tools)})
	}
	for _, text := range req.System {
		blocks = append(blocks, block{"system\n" + text, m.count.Text(text) + tokens.MessageOverhead})
	}
	fixed = tokens.ListOverhead
	for _, b := range blocks {
		fixed += b.tokens
	}
	for _, msg := range req.Messages {
		var b strings.Builder
		b.WriteString(string(msg.Role) + " " + msg.ToolCallID + "\n")
		for _, p := range msg.Parts {
			b.WriteString(p.Text + p.Signature + "\n")
		}
		b.WriteString(msg.Content)
		for _, c := range msg.ToolCalls {
			b.WriteString("\n" + c.ID + " " + c.Name + " " + c.Arguments)
		}
		blocks = append(blocks, block{b.String(), m.count.Message(core.Message{Content: msg.Content, Parts: msg.Parts, ToolCalls: msg.ToolCalls})})
	}
	return blocks, fixed
}

// Steady returns a counter to which all ids are alike: they are made at random, so
// that the count of a text that holds one would differ from replay to replay.
func Steady(count llm.TokenCounter) llm.TokenCounter { return steady{count} }

type steady struct{ llm.TokenCounter }

// Text counts the text with every id as the same one.
func (s steady) Text(text string) int { return s.TokenCounter.Text(withSameIDs(text)) }

// Message counts the message with every id as the same one.
func (s steady) Message(m core.Message) int {
	m.Content = withSameIDs(m.Content)
	for i, c := range m.ToolCalls {
		if args := withSameIDs(c.Arguments); args != c.Arguments {
			m.ToolCalls = append([]core.ToolCall(nil), m.ToolCalls...)
			m.ToolCalls[i].Arguments = args
		}
	}
	return s.TokenCounter.Message(m)
}

// anyID matches an id as core.NewID makes them.
var anyID = regexp.MustCompile(`[0-9a-z]{8}-[0-9a-z]{4}-7[0-9a-z]{3}-[0-9a-z]{4}-[0-9a-z]{12}`)

// sameID stands for all ids; it has their length.
const sameID = "01890000-0000-7000-8000-000000000000"

// withSameIDs returns the text with all ids as sameID.
func withSameIDs(text string) string {
	if !strings.Contains(text, "-7") { // the rule, and much quicker
		return text
	}
	return anyID.ReplaceAllLiteralString(text, sameID)
}
