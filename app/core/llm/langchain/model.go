package langchain

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/tmc/langchaingo/llms"
	"github.com/tmc/langchaingo/llms/openai"

	"bobbin/app/core/llm"
	"bobbin/app/core/llm/exchange"
)

// Model is one model of one provider of the OpenAI dialect.
type Model struct {
	options Options
	dialect dialect
	peer    *exchange.Peer
}

// New returns the model that the options describe. Nothing is sent before the
// first Stream. Options that cannot work are refused with core.ErrInvalid.
func New(options Options) (*Model, error) {
	options, d, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Model{options: options, dialect: d, peer: &exchange.Peer{
		Provider: options.Provider, BaseURL: options.BaseURL, Key: options.APIKey, Timeouts: options.Timeouts,
		Client: exchange.NewClient(options.Transport),
	}}, nil
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.options.Info }

// Stream sends the request and yields the answer as it arrives. Everything
// happens on the caller's goroutine; when Stream's loop has ended, the request
// has too. Errors are *llm.Error: KindCanceled when ctx ended it (also by its
// deadline), KindTimeout when one of our own limits passed.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Delta, error] {
	return func(yield func(llm.Delta, error) bool) {
		x := &conversation{model: m, req: req, yield: yield}
		if err := m.run(ctx, x); err != nil && !x.left {
			yield(llm.Delta{}, err)
		}
	}
}

// run lets langchaingo build the request; the conversation, as its HTTP client,
// does everything from there on and keeps the outcome.
func (m *Model) run(ctx context.Context, x *conversation) error {
	if ctx.Err() != nil {
		return llm.CanceledError(ctx, m.options.Provider)
	}
	messages, err := m.messages(x.req)
	if err != nil {
		return err
	}
	chat, err := openai.New(
		openai.WithHTTPClient(x),
		openai.WithBaseURL(m.options.BaseURL),
		// The conversation puts the real ones in. Were langchaingo to know the model it
		// would change the request by its name (O13, O20), and whatever it knows of
		// the key could show up in its errors.
		openai.WithModel(placeholder),
		openai.WithToken(placeholder),
		// Else it would send OPENAI_ORGANIZATION to any provider.
		openai.WithOrganization(""),
	)
	if err != nil {
		return m.peer.Invalid(err)
	}
	_, err = chat.GenerateContent(ctx, messages, m.callOptions(x.req)...)
	if !x.sent {
		return m.peer.Invalid(err)
	}
	if x.err != nil { // not err: langchaingo flattens errors (O12)
		return x.err
	}
	return nil
}

// placeholder stands where langchaingo wants something that it must not know.
const placeholder = "-"

func (m *Model) callOptions(req llm.Request) []llms.CallOption {
	var options []llms.CallOption
	if tools := m.tools(req); len(tools) > 0 {
		options = append(options, llms.WithTools(tools))
		if req.ToolChoice == llm.ToolChoiceNone {
			options = append(options, llms.WithToolChoice("none"))
		}
	}
	if req.MaxOutputTokens > 0 {
		options = append(options, llms.WithMaxTokens(req.MaxOutputTokens))
		if m.dialect.legacyMaxTokens {
			options = append(options, openai.WithLegacyMaxTokensField())
		}
	}
	return options
}

func (m *Model) tools(req llm.Request) []llms.Tool {
	if m.asText(req) {
		return nil
	}
	tools := make([]llms.Tool, 0, len(req.Tools))
	for _, t := range req.Tools {
		parameters := t.Parameters
		if len(parameters) == 0 {
			parameters = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, llms.Tool{Type: "function", Function: &llms.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: parameters,
		}})
	}
	return tools
}

// asText reports whether tool turns have to become text (W13).
func (m *Model) asText(req llm.Request) bool {
	return m.options.Info.NoToolChoice && req.ToolChoice == llm.ToolChoiceNone
}
