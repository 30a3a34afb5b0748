package provider

import (
	"fmt"

	"bobbin/app/core/llm"
)

// checkSystem refuses a system message among the others where Anthropic does.
//
// The rules are those of platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages,
// as excerpts and other clients report them (2026-11): it directly follows a message of the user, and is the last one or precedes one of
// the assistant; it has nothing but text and changes of the tools. Assumed: all models with preserved thinking take it, and of
// the others, which the page lists, none here.
func (c *conversation) checkSystem(i int) *refusal {
	messages := c.req.Messages
	if messages[i].Role != "system" {
		return nil
	}
	path := fmt.Sprintf("messages.%d", i)
	switch {
	case !llm.PrefixContractOf(c.req.Model).Binds():
		return refusef("%s: role 'system' is not supported on this model", path)
	case i == 0 || messages[i-1].Role != "user":
		return refusef("%s: a message with role 'system' must directly follow a message with role 'user'", path)
	case i < len(messages)-1 && messages[i+1].Role != "assistant":
		return refusef("%s: a message with role 'system' must be the last or precede one with role 'assistant'", path)
	}
	for j, raw := range messages[i].Content {
		at := fmt.Sprintf("%s.content.%d", path, j)
		switch kind := decoded(raw).Type; {
		case isToolChange(kind):
			if r := c.checkToolChange(at, raw); r != nil {
				return r
			}
		case kind != "text":
			return refusef("%s: a message with role 'system' cannot have a block of type %s", at, kind)
		}
	}
	return nil
}
