package mcp

import (
	"context"
	"errors"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/api/handlers"
	"bobbin/app/core"
)

// Addresses of resources: the prefix, the session's id, and the aspect.
const (
	sessionsPrefix = "bobbin://sessions/"
	aspectContext  = "context"
	aspectPrompt   = "prompt"
	aspectSummary  = "summary"
)

// maxResource bounds the text of a resource, in bytes.
const maxResource = 1 << 20

// templateOf returns the template of the addresses of an aspect.
func templateOf(aspect string) string { return sessionsPrefix + "{session_id}/" + aspect }

// canRead reports whether the caller may read resources of the template.
func canRead(caller core.Identity, template string) bool {
	return caller.Rights.Has(core.CanRead) && (caller.User == "" || template != templateOf(aspectPrompt))
}

func (s *Server) addResources(server *sdk.Server) {
	templates := []sdk.ResourceTemplate{
		{Name: aspectContext, Title: "Context window of a session", MIMEType: "application/json",
			Description: "The report on the next prompt of a session: tokens by section, triggers, coverage, summaries."},
		{Name: aspectPrompt, Title: "Prompt of a session", MIMEType: "application/json",
			Description: "The exact prompt that would be sent now, message by message. For API keys, not for end users."},
		{Name: aspectSummary, Title: "Summary of a session", MIMEType: "text/plain",
			Description: "The text that stands for the oldest messages in the prompt; empty if there is none."},
	}
	for _, template := range templates {
		template.URITemplate = templateOf(template.Name)
		server.AddResourceTemplate(&template, s.readResource)
	}
}

// readResource answers resources/read.
func (s *Server) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	uri := req.Params.URI
	id, aspect, _ := strings.Cut(strings.TrimPrefix(uri, sessionsPrefix), "/")
	caller, _ := core.IdentityFrom(ctx)
	if !canRead(caller, templateOf(aspect)) {
		return nil, &core.Error{Kind: core.ErrForbidden, Code: handlers.CodeOwnersOnly, Message: "the prompt is for API keys, not for end users"}
	}
	if err := exchangeOf(ctx).reserve(8 * handlers.AnswerBytes); err != nil {
		return nil, err
	}
	text, err := s.readAspect(ctx, caller.Tenant(), core.SessionID(id), aspect)
	switch {
	case errors.Is(err, core.ErrNotFound):
		return nil, sdk.ResourceNotFoundError(uri)
	case err != nil:
		return nil, err
	case len(text) > maxResource:
		return nil, core.Errorf(core.ErrTooLarge, "the resource has more than %d bytes; read it with GET /api/v1/sessions/%s/context/prompt", maxResource, id)
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: uri, Text: text}}}, nil
}

func (s *Server) readAspect(ctx context.Context, tenant core.Tenant, id core.SessionID, aspect string) (string, error) {
	if !core.ValidID(id) {
		return "", core.ErrNotFound
	}
	var view any
	var err error
	switch aspect {
	case aspectContext:
		view, err = s.Chat.Inspector.Report(ctx, tenant, id)
	case aspectPrompt:
		view, err = s.Chat.Inspector.Prompt(ctx, tenant, id, core.PlanPreview{})
	default:
		session, err := s.Sessions.Get(ctx, tenant, id)
		if err != nil || session.ConversationSummary == nil {
			return "", err
		}
		return *session.ConversationSummary, nil
	}
	if err != nil {
		return "", err
	}
	raw, err := core.EncodeJSON(view)
	return string(raw), err
}

// listResources answers resources/list with the contexts of the sessions, those with the newest
// activity first.
func (s *Server) listResources(ctx context.Context, caller core.Identity, req sdk.Request) (sdk.Result, error) {
	out := &sdk.ListResourcesResult{Resources: []*sdk.Resource{}, Cacheable: sdk.Cacheable{CacheScope: "private"}}
	if !canRead(caller, templateOf(aspectContext)) {
		return out, nil
	}
	query := sessionQuery{pageParam: pageParam{Limit: maxItems}}
	if list, ok := req.(*sdk.ListResourcesRequest); ok && list.Params != nil {
		query.Cursor = list.Params.Cursor
	}
	if err := exchangeOf(ctx).reserve(handlers.AnswerBytes); err != nil {
		return nil, err
	}
	page, err := s.readSessions(ctx, caller.Tenant(), query)
	if err != nil {
		return nil, err
	}
	if page.NextCursor != nil {
		out.NextCursor = *page.NextCursor
	}
	for _, session := range page.Items {
		title := session.Title
		if title == "" {
			title = "Untitled session"
		}
		out.Resources = append(out.Resources, &sdk.Resource{
			URI: sessionsPrefix + string(session.ID) + "/" + aspectContext, Name: string(session.ID), Title: title, MIMEType: "application/json",
			Description: "Context window of the session, agent " + session.Agent,
		})
	}
	return out, nil
}
