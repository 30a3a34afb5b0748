package eval

import (
	"context"
	"iter"
	"strings"
	"sync"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Expense is what a model was used for.
type Expense struct {
	Calls        int `json:"calls"`
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// Metered is a model whose use is counted. Safe for concurrent use.
type Metered struct {
	llm.Model
	count llm.TokenCounter
	mu    sync.Mutex
	spent Expense // guarded by mu
}

// Meter returns the model with its use counted: as its provider says, else with
// count.
func Meter(model llm.Model, count llm.TokenCounter) *Metered {
	return &Metered{Model: model, count: count}
}

// Spent returns what the model was used for so far.
func (m *Metered) Spent() Expense {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.spent
}

// Stream passes the request on.
func (m *Metered) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var usage *core.Usage
		var said strings.Builder
		defer func() { m.recordCall(req, usage, said.String()) }()
		for d, err := range m.Model.Stream(ctx, req) {
			if d.Usage != nil {
				usage = d.Usage
			}
			said.WriteString(d.Text)
			if !yield(d, err) {
				return
			}
		}
	}
}

// recordCall adds a call; without usage it is counted here.
func (m *Metered) recordCall(req llm.Request, usage *core.Usage, said string) {
	if usage == nil {
		usage = &core.Usage{InputTokens: m.count.Text(strings.Join(req.System, "\n\n")), OutputTokens: m.count.Text(said)}
		for _, msg := range req.Messages {
			usage.InputTokens += m.count.Message(core.Message{Content: msg.Content})
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.spent.Calls++
	m.spent.InputTokens += usage.InputTokens
	m.spent.OutputTokens += usage.OutputTokens
}
