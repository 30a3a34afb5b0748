package mcp

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

func (s *Server) addContextTools(server *sdk.Server) {
	addTool(s, server, tool{
		name: "get_context", title: "Look at an agent's context window", scope: core.CanRead, answer: 4 * handlers.AnswerBytes,
		description: "Says what the next prompt of a session contains: its size in tokens, by section, how full the context window is, " +
			"how many messages are sent word for word and how many a summary stands for, and the summary.",
	}, s.getContext)
	addTool(s, server, tool{
		name: "summarize_session", title: "Summarize a conversation", scope: core.CanWrite, effect: adds, open: true, answer: handlers.AnswerBytes,
		description: "Has the older messages of a session summarized now, so that its prompts get shorter, and returns the summary. " +
			"The messages stay readable and searchable.",
	}, s.summarizeSession)
}

// contextView is what the next prompt of a session contains.
type contextView struct {
	Model       string             `json:"model"`
	Policy      string             `json:"policy"`
	Window      int                `json:"window" jsonschema:"tokens of the model's context window"`
	Usable      int                `json:"usable" jsonschema:"tokens that a prompt may have"`
	Used        int                `json:"used" jsonschema:"tokens of the prompt that would be sent now"`
	Free        int                `json:"free"`
	TurnsLeft   *int               `json:"turns_left,omitempty" jsonschema:"turns until older messages are summarized, at the present rate"`
	WillTrigger bool               `json:"will_summarize" jsonschema:"the next turn starts a summary"`
	Summarizing bool               `json:"summarizing" jsonschema:"a summary is being made now"`
	Sections    []core.ContextPart `json:"sections"`
	Messages    core.Coverage      `json:"messages" jsonschema:"how many messages are sent in which way"`
	Reasons     []string           `json:"reasons"`
	Summary     string             `json:"summary,omitempty"`
}

func (s *Server) getContext(ctx context.Context, c call, in sessionParam) (contextView, error) {
	report, err := s.Chat.Inspector.Report(ctx, c.tenant, in.SessionID)
	if err != nil {
		return contextView{}, err
	}
	out := contextView{
		Model: report.Model, Policy: report.Policy, Window: report.Window, Usable: report.Usable, Used: report.Used, Free: report.Free,
		TurnsLeft: report.TurnsLeft, WillTrigger: report.WillTrigger, Summarizing: report.Summarizing,
		Sections: append([]core.ContextPart{}, report.Sections...), Messages: report.Coverage, Reasons: append([]string{}, report.Reasons...),
	}
	for _, summary := range report.Summaries {
		if summary.Version == report.SummaryVersion {
			out.Summary = core.Clip(summary.Content, pageBytes)
		}
	}
	return out, nil
}

// newSummary is the arguments of summarize_session.
type newSummary struct {
	SessionID core.SessionID `json:"session_id"`
	Focus     string         `json:"focus,omitempty" jsonschema:"what the summary must keep"`
}

// summaryView is a summary.
type summaryView struct {
	SessionID       core.SessionID `json:"session_id"`
	Version         int            `json:"version"`
	Content         string         `json:"content"`
	MessagesCovered int            `json:"messages_covered" jsonschema:"messages that it stands for"`
	TokensBefore    int            `json:"tokens_before"`
	TokensAfter     int            `json:"tokens_after"`
}

func (s *Server) summarizeSession(ctx context.Context, _ call, in newSummary) (summaryView, error) {
	summary, err := handlers.SummarizeWithin(ctx, s.Streams.Wait, s.Chat, in.SessionID, in.Focus)
	if err != nil {
		return summaryView{}, err
	}
	return summaryView{
		SessionID: summary.SessionID, Version: summary.Version, Content: core.Clip(summary.Content, pageBytes), MessagesCovered: summary.MessagesCovered,
		TokensBefore: summary.TokensBefore, TokensAfter: summary.TokensAfter,
	}, nil
}
