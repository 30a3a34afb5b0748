package provider_test

import (
	"net/http"
	"strings"
	"testing"

	"bobbin/tests/provider"
)

// compact asks for a compaction of the messages so far and returns the message with it.
func (c *client) compact() object {
	c.t.Helper()
	got := c.send(object{"compaction": object{"type": "summarize"}})
	if got.Status != http.StatusOK || got.StopReason != "compaction" {
		c.t.Fatalf("got %d %q %s, want a compaction", got.Status, got.StopReason, got.Error.Message)
	}
	return object{"role": "assistant", "content": got.Content}
}

// A compaction stands for exactly the messages that were sent: thoughts directly after it stay
// valid as long as system and tools do, also after another compaction.
func TestStrictCompaction(t *testing.T) {
	t.Parallel()
	const second = "messages.2.content.0" // the first kept thought
	invalid := func(path string) string {
		return path + ": Invalid `signature` in `thinking` block. The block is bound"
	}
	for name, tt := range map[string]struct {
		change func(c *client)
		says   string // "" = it is taken
	}{
		"kept turns as they were":     {func(*client) {}, ""},
		"nothing kept":                {func(c *client) { c.req["messages"] = list{c.messages()[0], user("go on")} }, ""},
		"cache_control on it":         {func(c *client) { c.block(0)["cache_control"] = object{"type": "ephemeral"} }, ""},
		"another model":               {func(c *client) { c.req["model"] = "claude-opus-5-5" }, ""},
		"in the first kept message":   {func(c *client) { c.mergeFirst() }, ""},
		"message between":             {func(c *client) { c.insert(1, user("reminder")) }, invalid("messages.3.content.0")},
		"first kept message left out": {func(c *client) { c.req["messages"] = append(c.messages()[:1:1], c.messages()[2:]...) }, invalid("messages.1.content.0")},
		"kept question changed":       {func(c *client) { c.block(1)["text"] = "changed" }, invalid(second)},
		"system changed":              {func(c *client) { c.req["system"] = "Another." }, invalid(second)},
		"tool added":                  {func(c *client) { c.req["tools"] = list{} }, invalid(second)},
		"messages before it":          {func(c *client) { c.insert(0, user("hello")) }, "messages.1.content.0: the `compaction` block must come first in `messages`"},
		"twice":                       {func(c *client) { c.insert(1, c.messages()[0]) }, "messages.1.content.0: a request carries at most one `compaction` block"},
		"signature cut":               {func(c *client) { c.block(0)["signature"] = c.block(0)["signature"].(string)[:50] }, "messages.0.content.0: Invalid `signature` in `compaction` block"},
		"no signature":                {func(c *client) { delete(c.block(0), "signature") }, "messages.0.content.0: Invalid `signature` in `compaction` block"},
		"text changed":                {func(c *client) { c.block(0)["content"] = "nothing happened" }, "messages.0.content.0: the `content` of the `compaction` block does not match its `signature`"},
		"another field":               {func(c *client) { c.block(0)["citations"] = nil }, "messages.0.content.0.compaction.citations: Extra inputs are not permitted"},
		"another account":             {func(c *client) { c.server = newServer(c.t, account("b")) }, "messages.0.content.0: Invalid `signature` in `compaction` block"},
		"without the beta header":     {func(c *client) { c.betas = []string{binding} }, "messages.0.content.0: Input tag 'compaction' found using 'type' does not match any of the expected tags"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, account("a"))
			c.ask("hello")
			kept := c.messages()
			c.req["messages"] = kept[:2:2]
			compaction := c.compact()
			c.req["messages"] = kept
			c.ask("two")
			c.ask("three")
			c.req["messages"] = append(list{compaction}, append(c.messages()[2:], user("four"))...)
			tt.change(c)
			got := c.send(nil)
			if !strings.HasPrefix(got.Error.Message, tt.says) || (got.Status == http.StatusOK) != (tt.says == "") {
				t.Errorf("got %d %q, want %q", got.Status, got.Error.Message, tt.says)
			}
		})
	}
}

// mergeFirst makes the compaction the first block of the message after it.
func (c *client) mergeFirst() {
	m, content := c.message(1)
	m["content"] = append(list{c.block(0)}, content...)
	c.req["messages"] = c.messages()[1:]
}

// insert inserts a message.
func (c *client) insert(i int, m any) {
	c.req["messages"] = append(c.messages()[:i:i], append(list{m}, c.messages()[i:]...)...)
}

// A thought stays valid through two compactions, and one from after the first compaction through the
// second. A message of the same role as the last one summarized would be merged into it.
func TestStrictCompactionAgain(t *testing.T) {
	t.Parallel()
	c := newClient(t, account("a"))
	c.ask("one")
	first := c.compact()
	c.ask("two")
	c.req["messages"] = append(list{first}, c.messages()[2:]...)
	c.add(user("three"))
	history := c.messages()
	c.req["messages"] = history[:1:1]
	second := c.compact()
	c.req["messages"] = history
	c.answer(nil)
	c.req["messages"] = append(list{second}, c.messages()[1:]...)
	c.add(user("four"))
	wantEqual(t, "status after the second compaction", c.send(nil).Status, http.StatusOK)
	wantEqual(t, "thoughts", c.server.Thoughts().Refused, 0)

	d := newClient(t, account("a"))
	d.add(user("one"))
	compaction := d.compact()
	d.add(user("two"))
	d.answer(nil)
	d.req["messages"] = append(list{compaction}, d.messages()[1:]...)
	d.add(user("three"))
	if got := d.send(nil); !strings.Contains(got.Error.Message, "bound to a different conversation") {
		t.Errorf("a kept message of the same role: got %d %q", got.Status, got.Error.Message)
	}
}

// A compaction is billed in the iterations only.
func TestStrictCompactionUsage(t *testing.T) {
	t.Parallel()
	c := newClient(t, account("a"))
	answered := c.ask("hello")
	if got := answered.Usage; got.Input == 0 || len(got.Iterations) != 1 || got.Iterations[0].Type != "message" || got.Iterations[0].Input != got.Input {
		t.Errorf("an answer: got %+v, want one iteration with its tokens", got)
	}
	got := c.send(object{"compaction": object{"type": "summarize"}})
	if u := got.Usage; u.Input != 0 || len(u.Iterations) != 1 || u.Iterations[0].Type != "compaction" || u.Iterations[0].Input == 0 {
		t.Errorf("a compaction: got %+v, want its tokens in one iteration only", u)
	}
	if text := got.Content[0].(object)["content"].(string); !strings.Contains(text, "hello") {
		t.Errorf("got the summary %q, want words of the conversation", text)
	}
	received := c.server.Received()
	if last := received[len(received)-1]; !last.Compaction || last.Answered {
		t.Errorf("got %+v recorded, want a compaction", last)
	}
}

// What a compaction's request may not have, and a compaction that is refused on purpose.
func TestStrictCompactionRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		request    object
		says, code string
	}{
		"context_management": {object{"context_management": object{"edits": list{}}}, "compaction: cannot be combined with context_management", ""},
		"stop_sequences":     {object{"stop_sequences": list{"x"}}, "compaction: cannot be combined with stop_sequences", ""},
		"forced tool":        {object{"tool_choice": object{"type": "any"}}, "compaction: cannot be combined with a tool_choice of type any", ""},
		"no messages":        {object{"messages": list{}}, "compaction: there is nothing to summarize", "compaction_nothing_to_summarize"},
		"open tool call": {
			object{"messages": list{object{"role": "assistant", "content": list{object{"type": "tool_use", "id": "a", "name": "clock", "input": object{}}}}}},
			"compaction: the last assistant turn ends in a tool call with no result", "",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, account("a"))
			c.ask("hello")
			tt.request["compaction"] = object{"type": "summarize"}
			got := c.send(tt.request)
			if got.Status != http.StatusBadRequest || got.Error.Message != tt.says || got.Error.Details.Code != tt.code {
				t.Errorf("got %d %q %q, want 400 %q %q", got.Status, got.Error.Message, got.Error.Details.Code, tt.says, tt.code)
			}
			c.betas = nil
			if got := c.send(object{"compaction": object{"type": "summarize"}}); got.Error.Message != "compaction: requires anthropic-beta: compact-2026-09-04" {
				t.Errorf("without the beta header: got %d %q", got.Status, got.Error.Message)
			}
		})
	}
	second := account("a")
	second.RefusesBlob = func(n int) bool { return n == 2 }
	c := newClient(t, second)
	c.ask("hello")
	c.req["messages"] = list{c.compact(), user("go on")}
	var codes []string
	for range 3 {
		codes = append(codes, c.send(nil).Error.Details.Code)
	}
	wantEqual(t, "codes of the blobs", codes, []string{"", "compaction_signature_invalid", ""})
	wantEqual(t, "counts", c.server.Thoughts(), provider.Thoughts{Verified: 1, Refused: 1})
}
