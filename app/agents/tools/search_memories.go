package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/prompttext"
)

// The result of a call: the max number of memories, and their size in bytes. More are searched than
// shown, as those of the owner's other users are left out.
const (
	shownMemories    = 8
	shownMemoryBytes = 1000
)

// NewSearchMemories returns the tool search_memories. It answers with memories of the session's user, and of a
// session without a user with memories without one. Search is memories.Service.Search.
func NewSearchMemories(search func(context.Context, core.Tenant, core.MemorySearch) (core.MemoryMatches, error)) *Custom {
	const example = `{"query": "dietary restrictions"}`
	type arguments struct {
		Query string `json:"query"`
	}
	return builtIn(llm.ToolSpec{
		Name: "search_memories",
		Description: "Searches the memories: facts that this user asked to keep, in any conversation. " +
			"Use it when the answer may depend on what is known about the user. Returns the nearest memories, best first.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string",` +
			`"description":"what to look for, such as \"dietary restrictions\""}},"required":["query"],"additionalProperties":false}`),
	}, example, func(ctx context.Context, call Call, args arguments) (string, error) {
		user := call.Session.UserID
		in := core.MemorySearch{Query: args.Query, Limit: shownMemories}
		if user == "" {
			in.Limit = core.MaxMemoryMatches
		}
		found, err := search(ctx, core.Tenant{Owner: call.Session.Owner, User: user}, in)
		var public *core.Error
		switch {
		case errors.As(err, &public) && errors.Is(err, core.ErrInvalid):
			return "", fmt.Errorf("%s; expected a JSON object such as %s", public.Message, example)
		case err != nil:
			return "", errors.New("the memories cannot be searched at the moment")
		}
		var b strings.Builder
		n := 0
		for _, match := range found.Items {
			if match.Memory.UserID != user || n == shownMemories {
				continue
			}
			n++
			fmt.Fprintf(&b, "\n\n[memory %s, %s]\n%s", match.Memory.ID, match.Memory.CreatedAt.UTC().Format("2 January 2006"),
				prompttext.Harmless(core.Clip(match.Memory.Content, shownMemoryBytes)))
		}
		switch n {
		case 0:
			return "There are no memories of this user.", nil
		case 1:
			return "The nearest memory; it may have nothing to do with the query." + b.String(), nil
		default:
			return fmt.Sprintf("The %d nearest memories, best first; they may have nothing to do with the query.", n) + b.String(), nil
		}
	})
}
