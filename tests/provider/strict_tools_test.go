package provider_test

import (
	"encoding/json"
	"strings"
	"testing"

	"bobbin/tests/provider"
)

const (
	byReference  = "mid-conversation-tool-changes-2026-07-01"
	byDefinition = "inline-tools-2026-09-15"
)

// adds and removes return messages that change the tools.
func adds(tools ...object) object {
	content := list{}
	for _, tool := range tools {
		content = append(content, object{"type": "tool_addition", "tool": object{"type": "tool_definition", "definition": tool}})
	}
	return object{"role": "system", "content": content}
}

func removes(name string) object {
	return object{"role": "system", "content": list{object{"type": "tool_removal", "tool": object{"type": "tool_reference", "name": name}}}}
}

// A tool that a message adds counts in the prefix.
func TestStrictToolChanges(t *testing.T) {
	t.Parallel()
	c := newClient(t, account("a"))
	c.betas = append(c.betas, byDefinition)
	c.add(user("one"), adds(tool("scales"), tool("ruler")))
	c.answer(nil)
	c.add(user("two"))
	m, _ := c.message(1)
	m["content"] = adds(tool("scales"))["content"]
	if got := c.send(nil); got.Status != 400 || !strings.Contains(got.Error.Message, "bound to a different conversation") {
		t.Errorf("got %d %q with another tool added, want a refusal", got.Status, got.Error.Message)
	}
}

// What is not defined cannot be added by its name, nor what is not offered be removed; and an account
// without the betas knows no such blocks.
func TestStrictToolChangesAreRefused(t *testing.T) {
	t.Parallel()
	reference := object{"role": "system", "content": list{object{"type": "tool_addition", "tool": object{"type": "tool_reference", "name": "scales"}}}}
	said := object{"role": "assistant", "content": list{object{"type": "text", "text": "said"}}}
	both := []string{byReference, byDefinition}
	for name, tt := range map[string]struct {
		strict   provider.Strict
		betas    []string
		messages list
		want     string
	}{
		"a definition without its beta": {provider.Strict{}, both[:1], list{user("one"), adds(tool("scales"))}, "Input tag 'tool_addition'"},
		"a removal without a beta":      {provider.Strict{}, nil, list{user("one"), removes("clock")}, "Input tag 'tool_removal'"},
		"an account that knows none":    {provider.Strict{RefusesToolChanges: true}, both, list{user("one"), adds(tool("scales"))}, "Input tag 'tool_addition'"},
		"an unknown name":               {provider.Strict{}, both, list{user("one"), reference}, "'scales' is not defined"},
		"a known name":                  {provider.Strict{}, both, list{user("one"), adds(tool("scales")), said, user("two"), reference}, ""},
		"nothing to remove":             {provider.Strict{}, both, list{user("one"), removes("scales")}, "no tool 'scales'"},
		"removed twice":                 {provider.Strict{}, both, list{user("one"), removes("clock"), said, user("two"), removes("clock")}, "no tool 'clock'"},
		"without a schema":              {provider.Strict{}, both, list{user("one"), adds(object{"name": "scales"})}, "Field required"},
		"in a message of the user":      {provider.Strict{}, both, list{object{"role": "user", "content": adds(tool("scales"))["content"]}}, "is for a message with role 'system'"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.strict.Account, tt.strict.Secret = "a", "secret"
			c := newClient(t, tt.strict)
			c.betas = append(c.betas, tt.betas...)
			c.add(tt.messages...)
			if got := c.send(nil); (got.Status == 400) != (tt.want != "") || !strings.Contains(got.Error.Message, tt.want) {
				t.Errorf("got %d %q, want %q", got.Status, got.Error.Message, tt.want)
			}
		})
	}
}

// additional returns an item that adds tools.
func additional(role string, names ...string) object {
	tools := list{}
	for _, name := range names {
		tools = append(tools, object{"type": "function", "name": name, "parameters": object{"type": "object"}})
	}
	return object{"type": "additional_tools", "role": role, "tools": tools}
}

// The same for OpenAI.
func TestStrictAdditionalTools(t *testing.T) {
	t.Parallel()
	r := newResponses(t, account("a"))
	r.ask("hello")
	r.add(additional("developer", "ruler", "scales"))
	r.ask("hello again")
	r.item(3)["tools"] = additional("", "scales")["tools"]
	r.add(asks("now"))
	if got := r.send("/v1/responses", nil); len(got.Removed) != 1 {
		t.Errorf("removed are %+v with other tools added, want the reasoning behind them", got.Removed)
	}
}

func TestStrictAdditionalToolsAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		strict provider.Strict
		item   object
		want   string
	}{
		"for a user":                 {provider.Strict{}, additional("user", "scales"), "only 'developer' is supported"},
		"without tools":              {provider.Strict{}, additional("developer"), "Missing required parameter"},
		"a tool of that name":        {provider.Strict{}, additional("developer", "calculator"), "Duplicate tool name"},
		"twice":                      {provider.Strict{}, additional("developer", "scales", "scales"), "Duplicate tool name"},
		"an account that knows none": {provider.Strict{RefusesToolChanges: true}, additional("developer", "scales"), "additional_tools"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newResponses(t, tt.strict)
			r.add(asks("hello"), tt.item)
			if got := r.send("/v1/responses", nil); got.Error == nil || !strings.Contains(got.Error.Message, tt.want) {
				raw, _ := json.Marshal(got)
				t.Errorf("got %s, want a refusal that says %q", raw, tt.want)
			}
		})
	}
}
