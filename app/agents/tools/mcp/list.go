package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// Bounds of the tools of one server. OpenAI takes 128 tools in a request.
const (
	maxTools     = 128
	maxSpecBytes = 256 << 10 // of all definitions together
	maxNotes     = 20
)

// list asks the server for its tools and keeps them.
func (s *Server) list(ctx context.Context, session *sdk.ClientSession) error {
	found, notes, err := s.listTools(ctx, session)
	if err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	names, size := tools.NewNamer(s.definition.Name), 0
	list := s.extraTools(names, session)
	for _, t := range found {
		custom, err := s.newTool(t)
		if err == nil {
			size += len(custom.Definition.Description) + len(custom.Definition.Parameters)
			if size > maxSpecBytes {
				err = fmt.Errorf("the definitions of all tools have more than %d KiB", maxSpecBytes>>10)
			}
		}
		if err != nil {
			notes = append(notes, fmt.Sprintf("tool %q was left out: %s", core.CleanText(core.Clip(t.Name, 100)), err))
			continue
		}
		custom.Definition.Name = names.Name(t.Name)
		list = append(list, custom)
	}
	listing := tools.NewListing(list)
	listing.Notes = notes[:min(len(notes), maxNotes)]
	if before := s.Listing(); listing.Hash != before.Hash && len(listing.Notes) > 0 {
		s.o.Logger.WarnContext(ctx, "mcp server has tools that cannot be used", "notes", listing.Notes)
	}
	s.listing.Store(&listing)
	return nil
}

// listTools returns the server's tools that agents may get, and notes on those that are missing.
func (s *Server) listTools(ctx context.Context, session *sdk.ClientSession) (found []*sdk.Tool, notes []string, err error) {
	if c := session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, []string{"it says that it has no tools"}, nil
	}
	seen, full := map[string]bool{}, false
	ended, err := readPages(func(cursor string) (string, error) {
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return "", fmt.Errorf("its tools cannot be listed: %w", err)
		}
		for _, t := range page.Tools {
			if t == nil || seen[t.Name] || len(s.definition.Only) > 0 && !slices.Contains(s.definition.Only, t.Name) {
				continue
			}
			if full = len(found) == maxTools; full {
				return "", nil
			}
			seen[t.Name], found = true, append(found, t)
		}
		return page.NextCursor, nil
	})
	switch {
	case err != nil:
		return nil, nil, err
	case full:
		return found, append(notes, fmt.Sprintf("it has more than %d tools: the others were left out; name those that are needed under only", maxTools)), nil
	case !ended:
		notes = append(notes, fmt.Sprintf("its list of tools has no end: it was read for %d pages", maxPages))
	}
	for _, name := range s.definition.Only {
		if !seen[name] {
			notes = append(notes, fmt.Sprintf("it has no tool %q", core.Clip(name, 100)))
		}
	}
	return found, notes, nil
}

// newTool returns a tool of the server, without the name that models call it by.
func (s *Server) newTool(t *sdk.Tool) (*tools.Custom, error) {
	const maxToolName = 256
	if t.Name == "" || len(t.Name) > maxToolName {
		return nil, fmt.Errorf("its name must have 1 to %d bytes", maxToolName)
	}
	if t.InputSchema == unreadableTool {
		return nil, errors.New(unreadableTool)
	}
	schema, err := tools.FitSchema(t.InputSchema)
	if err != nil {
		return nil, err
	}
	custom := &tools.Custom{
		Definition: llm.ToolSpec{Description: tools.FitDescription(s.hide(cmp.Or(t.Description, t.Title))), Parameters: json.RawMessage(s.hide(string(schema)))},
		Approval:   core.ApprovalAlways,
	}
	if a := t.Annotations; a != nil {
		custom.Repeatable = a.ReadOnlyHint || a.IdempotentHint
		if a.ReadOnlyHint {
			custom.Approval = core.ApprovalNever
		}
	}
	name, repeatable := t.Name, custom.Repeatable
	custom.Execute = func(ctx context.Context, call tools.Call) (string, error) {
		return s.callTool(ctx, name, call.Arguments, repeatable)
	}
	return custom, nil
}
