package openai

import (
	"context"
	"strings"

	"bobbin/app/core"
)

// storeMissing stores the turns of the client that the log does not have, and reports whether it
// did: the new message then comes at the end of the current path.
func (a *API) storeMissing(ctx context.Context, r request, session core.SessionID, at placement) (bool, error) {
	in := core.AppendMessages{SessionID: session}
	if at.kind == placeBranch {
		in.Branch = &at.after
	}
	if len(at.missing) == 0 {
		return false, nil
	}
	return true, a.Transfer.AppendHistory(ctx, r.tenant, in, func(yield func(core.Message) bool) {
		for _, t := range at.missing {
			for _, m := range t.messages {
				if !yield(m.toCore(r.user)) {
					return
				}
			}
		}
	})
}

// toCore returns the message as the log has it.
func (m message) toCore(user string) core.Message {
	stored := core.Message{Role: core.Role(m.Role), Content: m.Content.text, Source: core.SourceClient, ToolCallID: m.ToolCallID}
	if m.Role == "user" {
		stored.Author, stored.AuthorID = m.Name, user
	}
	stored.Content += strings.Repeat("\n[a file that the client had sent before]", len(m.Content.files))
	for _, call := range m.ToolCalls {
		stored.ToolCalls = append(stored.ToolCalls, core.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
	}
	return stored
}
