// Package demo is the model that answers when no other is configured, without a language
// model behind it. Its first answer says so. It calls the tools calculator and current_time, and any
// other one whose name a message has right before a JSON object, and answers every other question by quoting its prompt, messages or summary: so it shows
// what the prompt holds. As a summarizer it copies sentences. It works offline, and the same
// request gives the same answer.
package demo

import (
	"cmp"
	"context"
	"iter"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Sizes in tokens, and Delay: how long each word takes in a server.
const (
	Delay     = 8 * time.Millisecond
	name      = llm.ProviderDemo // of the model, too
	window    = 8_192            // small, so that context management can be seen at work
	maxOutput = 2_048
)

// Model answers without a language model. Safe for concurrent use.
type Model struct {
	count llm.TokenCounter
	delay time.Duration
}

// New returns the demonstration. Each word of an answer takes the delay.
func New(count llm.TokenCounter, delay time.Duration) *Model { return &Model{count, delay} }

// Info describes the model.
func (m *Model) Info() llm.Info {
	return llm.Info{Name: name, Provider: name, Window: window, MaxOutput: maxOutput, PriorFactor: 1}
}

// Stream answers word by word. It fails only when ctx is done, with KindCanceled.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		var out []llm.Delta
		text, calls := m.answer(req)
		limit := min(cmp.Or(req.MaxOutputTokens, maxOutput), maxOutput)
		n := tokens.ListOverhead + m.count.Tools(req.Tools)
		if len(req.System) > 0 {
			n += tokens.MessageOverhead + m.count.Text(strings.Join(req.System, "\n\n"))
		}
		for _, msg := range req.Messages {
			n += tokens.Prompted(m.count.Text, msg)
		}
		finish, usage := core.FinishStop, core.Usage{InputTokens: n}
		for word := range strings.SplitAfterSeq(text, " ") {
			n := m.count.Text(word)
			if usage.OutputTokens+n > limit {
				finish = core.FinishLength
				break
			}
			usage.OutputTokens += n
			out = append(out, llm.Delta{Text: word})
		}
		for i, c := range calls {
			finish = core.FinishToolCalls
			usage.OutputTokens += m.count.Text(c.Name) + m.count.Text(c.Arguments)
			out = append(out, llm.Delta{ToolCall: &llm.ToolCallDelta{Index: i, ID: c.ID, Name: c.Name, Arguments: c.Arguments}})
		}
		for _, d := range append(out, llm.Delta{Usage: &usage, Finish: finish}) {
			select {
			case <-ctx.Done():
			case <-time.After(m.delay):
			}
			if ctx.Err() != nil {
				yield(llm.Delta{}, llm.CanceledError(ctx, name))
				return
			}
			if !yield(d, nil) {
				return
			}
		}
	}
}
