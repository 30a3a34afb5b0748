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

// Bounds of the tools of one server.
const (
	maxSpecBytes = 256 << 10 // of all definitions together
	maxNotes     = 20
	maxPages     = 64      // of the list
	maxCursor    = 4 << 10 // bytes
)

// list asks the server for its tools and keeps them. From the first list on, tools can be called.
func (s *Server) list(ctx context.Context, session *sdk.ClientSession) error {
	found, notes, err := s.listTools(ctx, session)
	if err != nil {
		return err
	}
	slices.SortStableFunc(found, func(a, b *sdk.Tool) int { return cmp.Compare(a.Name, b.Name) })
	var own []string
	for _, t := range found {
		own = append(own, s.hide(t.Name))
	}
	names, size := tools.NewNamer(s.definition.Name, own), 0
	var list []*tools.Custom
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
		custom.Definition.Name, custom.Name = names.Name(s.hide(t.Name)), t.Name
		notes = append(notes, s.keepStrict(custom)...)
		list = append(list, custom)
	}
	listing := tools.NewListing(list)
	for _, note := range notes[:min(len(notes), maxNotes)] {
		listing.Notes = append(listing.Notes, s.hide(note))
	}
	if before := s.Listing(); len(listing.Notes) > 0 && !slices.Equal(listing.Notes, before.Notes) {
		s.o.Logger.WarnContext(ctx, "mcp server has tools that are left out, or used otherwise than it says", "notes", listing.Notes)
	}
	s.session.Store(session) // before those who wait for the tools call them
	s.Set(listing)
	return nil
}

// keepStrict keeps a tool as strict as it was when it was listed first: a server that was honest when
// an operator looked at its tools may say later that they only read. A note says what was not followed.
func (s *Server) keepStrict(tool *tools.Custom) (notes []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, known := s.first[tool.Name]
	switch {
	case !known && len(s.first) < maxFirst:
		s.first[tool.Name] = strictness{tool.Approval, tool.Repeatable}
		return nil
	case !known:
		before.approval = core.ApprovalAlways
	}
	if before.approval == core.ApprovalAlways && tool.Approval == core.ApprovalNever || !before.repeatable && tool.Repeatable {
		tool.Approval, tool.Repeatable = before.approval, before.repeatable
		return []string{fmt.Sprintf("tool %q says now that it needs no approval, or may be repeated: that counts after bobbin agents reload", core.CleanText(core.Clip(tool.Name, 100)))}
	}
	return nil
}

// Accept has what the server says about its tools now count, and lists them again.
func (s *Server) Accept() {
	s.mu.Lock()
	clear(s.first)
	s.mu.Unlock()
	core.Signal(s.stale)
}

// listTools returns the server's tools that agents may get, and notes on those that are missing. A list
// that has more than maxPages, repeats a cursor or sends one that is too long is not read further.
func (s *Server) listTools(ctx context.Context, session *sdk.ClientSession) (found []*sdk.Tool, notes []string, err error) {
	if c := session.InitializeResult().Capabilities; c == nil || c.Tools == nil {
		return nil, []string{"it says that it has no tools"}, nil
	}
	seen, read, cursor, left := map[string]bool{}, map[string]bool{}, "", 0
	for begin := true; begin || cursor != ""; begin = false {
		if len(read) == maxPages || len(cursor) > maxCursor || read[cursor] {
			notes = append(notes, fmt.Sprintf("its list of tools has no end: it was read for %d pages", len(read)))
			break
		}
		page, err := session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, nil, fmt.Errorf("its tools cannot be listed: %w", err)
		}
		for _, t := range page.Tools {
			if t == nil || seen[t.Name] || len(s.definition.Only) > 0 && !slices.Contains(s.definition.Only, t.Name) {
				continue
			}
			if len(found) == core.MaxTools {
				left++
				continue
			}
			seen[t.Name], found = true, append(found, t)
		}
		read[cursor], cursor = true, page.NextCursor
	}
	if left > 0 {
		return found, append(notes, tools.TooMany(len(found)+left)), nil
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
	custom.Call = func(ctx context.Context, call tools.Call) (string, error) {
		arguments, err := tools.ParseChecked(call.Arguments, nil)
		if err != nil {
			return "", err
		}
		session := s.session.Load()
		if session == nil {
			return "", s.notConnectedError()
		}
		result, err := session.CallTool(ctx, &sdk.CallToolParams{Name: t.Name, Arguments: arguments})
		if err != nil {
			return "", s.explainCall(ctx, err, custom.Repeatable)
		}
		text := ""
		for _, c := range result.Content { // fitMessage made it one text
			if one, ok := c.(*sdk.TextContent); ok {
				text = s.hide(one.Text)
				break
			}
		}
		switch {
		case result.IsError && text == "":
			text = "the tool failed and does not say why"
		case text == "":
			text = "[the answer has no content]"
		}
		if result.IsError {
			return "", errors.New(core.Clip(text, maxErrorText))
		}
		return text, nil
	}
	return custom, nil
}
