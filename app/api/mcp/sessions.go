package mcp

import (
	"cmp"
	"context"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Limits of results.
const (
	maxItems  = 50        // items of a list
	pageBytes = 128 << 10 // of the messages of a page
	maxText   = 32 << 10  // bytes of one message, or of one memory
	maxCursor = 512
)

func (s *Server) addSessionTools(server *sdk.Server) {
	addTool(s, server, tool{
		name: "list_sessions", title: "List conversations", scope: core.CanRead, answer: handlers.AnswerBytes,
		description: "Lists sessions (conversations), those with the newest activity first; with query those with matching titles or messages.",
	}, s.listSessions)
	addTool(s, server, tool{
		name: "get_session", title: "Look at a conversation", scope: core.CanRead, answer: 2 * handlers.AnswerBytes,
		description: "Returns a session with its state, its summary and its newest runs. Use it to find the run of a message whose answer was not waited for.",
	}, s.getSession)
	addTool(s, server, tool{
		name: "get_messages", title: "Read a conversation", scope: core.CanRead, answer: 4 * handlers.AnswerBytes,
		description: "Returns messages of a session, the newest first. Very long messages are truncated. next_cursor continues with earlier ones.",
	}, s.getMessages)
	addTool(s, server, tool{
		name: "search_messages", title: "Search conversations", scope: core.CanRead, answer: handlers.AnswerBytes,
		description: `Searches all messages, or those of one session, and returns excerpts, the best first. Ask with a question or with a few specific words: rare words count most, in any form. A phrase in "quotes" must be in the message, -word excludes a word, begin* finds all words with that beginning.`,
	}, s.searchMessages)
}

type sessionItem struct {
	SessionID    core.SessionID     `json:"session_id"`
	Title        string             `json:"title"`
	Agent        string             `json:"agent"`
	Status       core.SessionStatus `json:"status" jsonschema:"idle, queued, running or waiting (for a person's decision)"`
	MessageCount int                `json:"message_count"`
	CreatedAt    time.Time          `json:"created_at"`
	UpdatedAt    time.Time          `json:"updated_at"`
}

func itemOf(s core.Session) sessionItem {
	return sessionItem{SessionID: s.ID, Title: s.Title, Agent: s.Agent, Status: s.Status, MessageCount: s.MessageCount, CreatedAt: s.CreatedAt, UpdatedAt: s.UpdatedAt}
}

type sessionQuery struct {
	Query string `json:"query,omitempty" jsonschema:"a question, or words to look for; leave it out for all sessions"`
	Agent string `json:"agent,omitempty" jsonschema:"only sessions of this agent"`
	pageParam
}

// pageParam is the arguments for a page of a list.
type pageParam struct {
	Limit  int    `json:"limit,omitempty" min:"1" max:"50" jsonschema:"20 by default"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// query returns the query for the page. A cursor that is too long is none of a list.
func (p pageParam) query() core.PageQuery {
	return core.PageQuery{Limit: cmp.Or(p.Limit, 20), Cursor: core.Clip(p.Cursor, maxCursor)}
}

type sessionPage struct {
	Sessions   []sessionItem `json:"sessions"`
	NextCursor *string       `json:"next_cursor,omitempty" jsonschema:"there are more: pass it as cursor"`
}

func (s *Server) listSessions(ctx context.Context, c call, in sessionQuery) (sessionPage, error) {
	page, err := s.readSessions(ctx, c.tenant, in)
	if err != nil {
		return sessionPage{}, err
	}
	out := sessionPage{Sessions: []sessionItem{}, NextCursor: page.NextCursor}
	for _, session := range page.Items {
		out.Sessions = append(out.Sessions, itemOf(session))
	}
	return out, nil
}

func (s *Server) readSessions(ctx context.Context, tenant core.Tenant, in sessionQuery) (core.Page[core.Session], error) {
	query := core.SessionQuery{Text: in.Query, Agent: in.Agent, PageQuery: in.query()}
	if in.Query != "" {
		query.Order = core.OrderByRelevance
	}
	return s.ListSessions(ctx, tenant, query)
}

type sessionParam struct {
	SessionID core.SessionID `json:"session_id"`
}

type sessionDetail struct {
	Session         sessionItem `json:"session"`
	Model           string      `json:"model,omitempty" jsonschema:"answers in place of the agent's own"`
	Archived        bool        `json:"archived,omitempty"`
	Summary         string      `json:"summary,omitempty" jsonschema:"stands for the oldest messages in the agent's prompt"`
	SummarizedCount int         `json:"summarized_count" jsonschema:"messages that the summary stands for"`
	Runs            []runItem   `json:"runs" jsonschema:"the newest runs, the newest first"`
}

type runItem struct {
	RunID     core.RunID     `json:"run_id"`
	Status    core.RunStatus `json:"status"`
	Error     string         `json:"error,omitempty"`
	CreatedAt time.Time      `json:"created_at"`
}

func (s *Server) getSession(ctx context.Context, c call, in sessionParam) (sessionDetail, error) {
	session, err := s.Sessions.Get(ctx, c.tenant, in.SessionID)
	if err != nil {
		return sessionDetail{}, err
	}
	runs, err := s.Runs.List(ctx, c.tenant, in.SessionID, core.PageQuery{Limit: 5, Bytes: pageBytes})
	if err != nil {
		return sessionDetail{}, err
	}
	out := sessionDetail{Session: itemOf(session), Model: session.Model, Archived: session.ArchivedAt != nil, SummarizedCount: session.SummarizedCount, Runs: []runItem{}}
	if session.ConversationSummary != nil {
		out.Summary = core.Clip(*session.ConversationSummary, pageBytes)
	}
	for _, run := range runs.Items {
		item := runItem{RunID: run.ID, Status: run.Status, CreatedAt: run.CreatedAt}
		if run.Error != nil {
			item.Error = run.Error.Message
		}
		out.Runs = append(out.Runs, item)
	}
	return out, nil
}

type messageQuery struct {
	SessionID core.SessionID `json:"session_id"`
	pageParam
}

type messagePage struct {
	Messages   []messageItem `json:"messages"`
	NextCursor *string       `json:"next_cursor,omitempty" jsonschema:"there are earlier messages: pass it as cursor"`
}

type messageItem struct {
	MessageID core.MessageID `json:"message_id"`
	Role      core.Role      `json:"role"`
	Author    string         `json:"author,omitempty"`
	Content   string         `json:"content"`
	Truncated bool           `json:"truncated,omitempty"`
	ToolName  string         `json:"tool_name,omitempty" jsonschema:"of the result of a tool"`
	ToolCalls []string       `json:"tool_calls,omitempty" jsonschema:"names of the tools that the agent called"`
	CreatedAt time.Time      `json:"created_at"`
}

func (s *Server) getMessages(ctx context.Context, c call, in messageQuery) (messagePage, error) {
	query := core.MessageQuery{Descending: true, PageQuery: in.query()}
	query.Bytes = pageBytes
	page, err := s.Messages.List(ctx, c.tenant, in.SessionID, query)
	if err != nil {
		return messagePage{}, err
	}
	out := messagePage{Messages: []messageItem{}, NextCursor: page.NextCursor}
	for _, m := range page.Items {
		item := messageItem{MessageID: m.ID, Role: m.Role, Author: m.Author, Content: core.Clip(m.Content, maxText), ToolName: m.ToolName, CreatedAt: m.CreatedAt}
		item.Truncated = len(item.Content) < len(m.Content)
		for _, called := range m.ToolCalls {
			item.ToolCalls = append(item.ToolCalls, called.Name)
		}
		out.Messages = append(out.Messages, item)
	}
	return out, nil
}

type messageSearch struct {
	Query     string         `json:"query" jsonschema:"a question, or words to look for"`
	SessionID core.SessionID `json:"session_id,omitempty" jsonschema:"only this session; leave it out for all"`
	Role      core.Role      `json:"role,omitempty" enum:"user,assistant,tool,system" jsonschema:"only messages of this role"`
	Author    string         `json:"author,omitempty" jsonschema:"only messages of this author, by name or id"`
	After     time.Time      `json:"after,omitzero" jsonschema:"only messages of this time or later, such as 2026-01-31T12:00:00Z"`
	Before    time.Time      `json:"before,omitzero" jsonschema:"only messages before this time"`
	Newest    bool           `json:"newest,omitempty" jsonschema:"the newest first, of the messages that have all words exactly"`
	pageParam
}

type hitPage struct {
	Hits       []hit   `json:"hits"`
	NextCursor *string `json:"next_cursor,omitempty" jsonschema:"there are more: pass it as cursor"`
	Indexing   bool    `json:"indexing,omitempty" jsonschema:"old messages are still being made searchable: some may be missing"`
}

type hit struct {
	SessionID    core.SessionID `json:"session_id"`
	SessionTitle string         `json:"session_title"`
	MessageID    core.MessageID `json:"message_id"`
	Role         core.Role      `json:"role"`
	Excerpt      string         `json:"excerpt"`
	CreatedAt    time.Time      `json:"created_at"`
}

func (s *Server) searchMessages(ctx context.Context, c call, in messageSearch) (hitPage, error) {
	if in.Query == "" {
		return hitPage{}, core.Errorf(core.ErrInvalid, "query is empty: give the words to look for")
	}
	query := core.SearchQuery{Text: in.Query, SessionID: in.SessionID, Role: in.Role, Author: in.Author, After: in.After, Before: in.Before, PageQuery: in.query()}
	if in.Newest {
		query.Sort = core.SortNewest
	}
	if in.SessionID != "" {
		if _, err := s.Sessions.Get(ctx, c.tenant, in.SessionID); err != nil {
			return hitPage{}, err
		}
	}
	page, err := s.SearchMessages(ctx, c.tenant, query)
	if err != nil {
		return hitPage{}, err
	}
	out := hitPage{Hits: []hit{}, NextCursor: page.NextCursor, Indexing: page.Indexing}
	for _, h := range page.Items {
		out.Hits = append(out.Hits, hit{SessionID: h.SessionID, SessionTitle: h.SessionTitle, MessageID: h.MessageID, Role: h.Role, Excerpt: h.Excerpt, CreatedAt: h.CreatedAt})
	}
	return out, nil
}

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

type newSummary struct {
	SessionID core.SessionID `json:"session_id"`
	Focus     string         `json:"focus,omitempty" jsonschema:"what the summary must keep"`
}

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
