package provider_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/tests/must"
	"bobbin/tests/provider"
)

const (
	model   = "claude-fable-5-1"
	binding = "thinking-binding-controls-2026-08-01"
)

type (
	object = map[string]any
	list   = []any
)

// reply is what a provider answers.
type reply struct {
	Status          int
	Content         list
	Transformations []provider.Transformation `json:"input_transformations"`
	Error           struct {
		Message string
	}
}

// client sends a conversation to a strict provider.
type client struct {
	t      *testing.T
	server *provider.Server
	req    object
}

// account returns the settings of an account of one provider.
func account(name string) provider.Strict {
	return provider.Strict{Account: name, Secret: "secret", AlwaysThinks: true}
}

// newClient returns a client of a model that decides how much it thinks.
func newClient(t *testing.T, strict provider.Strict) *client {
	t.Helper()
	return &client{t: t, server: newServer(t, strict), req: object{
		"model": model, "max_tokens": 4_096,
		"system": list{object{"type": "text", "text": "You help."}, object{"type": "text", "text": "Be short."}},
		"tools":  list{tool("calculator"), tool("clock")}, "messages": list{},
	}}
}

func newServer(t *testing.T, strict provider.Strict) *provider.Server {
	t.Helper()
	s := must.Get(provider.New(provider.Options{Strict: &strict}))(t)
	t.Cleanup(s.Close)
	return s
}

func tool(name string) object {
	return object{"name": name, "description": "The " + name + ".", "input_schema": object{"type": "object", "properties": object{}}}
}

func user(text string) object {
	return object{"role": "user", "content": list{object{"type": "text", "text": text}}}
}

func (c *client) messages() list { return c.req["messages"].(list) }

// message returns a message, and its content.
func (c *client) message(i int) (object, list) {
	m := c.messages()[i].(object)
	content, _ := m["content"].(list)
	return m, content
}

func (c *client) add(messages ...any) { c.req["messages"] = append(c.messages(), messages...) }

// send sends the request.
func (c *client) send() (out reply) {
	c.t.Helper()
	body := must.Get(json.Marshal(c.req))(c.t)
	r := must.Get(http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.server.URL+"/messages", bytes.NewReader(body)))(c.t)
	r.Header.Set("Anthropic-Beta", binding)
	res := must.Get(http.DefaultClient.Do(r))(c.t)
	defer res.Body.Close()
	must.Do(c.t, json.NewDecoder(res.Body).Decode(&out))
	out.Status = res.StatusCode
	return out
}

// ask adds a question, if there is one, and the answer, and returns it.
func (c *client) ask(text string) reply {
	c.t.Helper()
	if text != "" {
		c.add(user(text))
	}
	out := c.send()
	if out.Status != http.StatusOK {
		c.t.Fatalf("got %d %s", out.Status, out.Error.Message)
	}
	c.add(object{"role": "assistant", "content": out.Content})
	return out
}

// converse holds a conversation of seven messages with four thoughts in messages 1, 3, 4 … : two
// questions, one of them with a tool call, and one more.
func (c *client) converse() *client {
	c.t.Helper()
	c.ask("hello")
	call := c.ask("use a tool")
	use := call.Content[len(call.Content)-1].(object)
	c.add(object{"role": "user", "content": list{object{"type": "tool_result", "tool_use_id": use["id"], "content": "42"}}})
	c.ask("")
	c.ask("thanks")
	c.add(user("one more"))
	return c
}

// remove removes the first block of a message.
func (c *client) remove(i int) {
	m, content := c.message(i)
	m["content"] = content[1:]
}

// block returns the first block of a message.
func (c *client) block(i int) object {
	_, content := c.message(i)
	return content[0].(object)
}

// The thoughts of a conversation are in the messages 1, 3, 5 and 7.
const (
	allValid   = ""
	firstWrong = "messages.1.content.0"
)

func TestStrictChanges(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(c *client)
		want   string // the first thought that is refused
	}{
		"none":                             {func(*client) {}, allValid},
		"cache_control added":              {func(c *client) { c.block(0)["cache_control"] = object{"type": "ephemeral", "ttl": "1h"} }, allValid},
		"cache_control on tools":           {func(c *client) { c.req["tools"].(list)[1].(object)["cache_control"] = object{"type": "ephemeral"} }, allValid},
		"parameters":                       {func(c *client) { c.req["max_tokens"], c.req["tool_choice"] = 8_000, object{"type": "none"} }, allValid},
		"a text instead of one block":      {func(c *client) { c.messages()[0].(object)["content"] = "hello" }, allValid},
		"a tool that is deferred":          {func(c *client) { c.req["tools"] = append(c.req["tools"].(list), deferred("later")) }, allValid},
		"first thought left out":           {func(c *client) { c.remove(1) }, allValid},
		"first two thoughts left out":      {func(c *client) { c.remove(1); c.remove(3) }, allValid},
		"last thought left out":            {func(c *client) { c.remove(7) }, allValid},
		"all thoughts left out":            {func(c *client) { c.remove(1); c.remove(3); c.remove(5); c.remove(7) }, allValid},
		"thought between others left out":  {func(c *client) { c.remove(3) }, "messages.5.content.0"},
		"thoughts exchanged":               {func(c *client) { exchange(c.block(3), c.block(5)) }, "messages.3.content.0"},
		"system changed":                   {func(c *client) { c.req["system"].(list)[1] = object{"type": "text", "text": "Be long."} }, firstWrong},
		"system in one block":              {func(c *client) { c.req["system"] = "You help.Be short." }, firstWrong},
		"tool added":                       {func(c *client) { c.req["tools"] = append(c.req["tools"].(list), tool("more")) }, firstWrong},
		"tool removed":                     {func(c *client) { c.req["tools"] = list{tool("calculator")} }, firstWrong},
		"tools in another order":           {func(c *client) { c.req["tools"] = list{tool("clock"), tool("calculator")} }, firstWrong},
		"tool described differently":       {func(c *client) { c.req["tools"].(list)[0].(object)["description"] = "Counts." }, firstWrong},
		"question changed":                 {func(c *client) { c.block(0)["text"] = "hello!" }, firstWrong},
		"text added to a question":         {func(c *client) { c.appendTo(2, "reminder") }, "messages.3.content.0"},
		"answer changed":                   {func(c *client) { _, b := c.message(1); b[1].(object)["text"] = "hi" }, "messages.3.content.0"},
		"arguments of a call changed":      {func(c *client) { _, b := c.message(3); b[1].(object)["input"] = object{"expression": "6*7"} }, "messages.5.content.0"},
		"result of a tool shortened":       {func(c *client) { c.block(4)["content"] = "4" }, "messages.5.content.0"},
		"message left out":                 {func(c *client) { c.req["messages"] = append(c.messages()[:6:6], c.messages()[7:]...) }, "messages.6.content.0"},
		"summary instead of the beginning": {func(c *client) { c.req["messages"] = append(list{user("a summary")}, c.messages()[2:]...) }, "messages.2.content.0"},
		"questions merged into one message": {func(c *client) {
			c.appendTo(0, "more")
			c.req["messages"] = append(list{user("hello")}, c.messages()...)
		}, "messages.2.content.0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, account("a")).converse()
			tt.change(c)
			got := c.send()
			if tt.want == allValid {
				if got.Status != http.StatusOK || len(got.Transformations) > 0 {
					t.Errorf("got %d %s, %v, want an answer", got.Status, got.Error.Message, got.Transformations)
				}
				return
			}
			want := tt.want + ": Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to \"drop_block\"."
			if got.Status != http.StatusBadRequest || got.Error.Message != want {
				t.Errorf("got %d %q, want 400 %q", got.Status, got.Error.Message, want)
			}
			if got := c.server.Thoughts().Refused; got != 1 {
				t.Errorf("got %d refused requests, want 1", got)
			}
		})
	}
}

func deferred(name string) object {
	d := tool(name)
	d["defer_loading"] = true
	return d
}

func exchange(a, b object) {
	kept := maps.Clone(a)
	maps.Copy(a, b)
	maps.Copy(b, kept)
}

// appendTo appends a text to a message.
func (c *client) appendTo(i int, text string) {
	m, content := c.message(i)
	m["content"] = append(content, object{"type": "text", "text": text})
}

func wantEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: got the difference (-want +got)\n%s", what, diff)
	}
}

// A thought of another model or account is dropped without an error, a forged one is an error for
// every account. Redacted thoughts are checked as well.
func TestStrictForeignThoughts(t *testing.T) {
	t.Parallel()
	forged := account("a")
	forged.Secret = "another secret"
	for name, tt := range map[string]struct {
		strict provider.Strict
		change func(c *client)
		want   []provider.Transformation
		says   string
	}{
		"another model":   {account("a"), func(c *client) { c.req["model"] = "claude-opus-5-5" }, reasons("model"), ""},
		"another account": {account("b"), func(*client) {}, reasons("organization"), ""},
		"another account and model": {
			account("b"), func(c *client) { c.req["model"] = "claude-opus-5-5" }, reasons("organization"), "",
		},
		"forged":             {forged, func(*client) {}, nil, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"signature cut":      {account("a"), func(c *client) { c.block(1)["signature"] = c.block(1)["signature"].(string)[:40] }, nil, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"text changed":       {account("a"), func(c *client) { c.block(1)["thinking"] = "hm" }, nil, "messages.1.content.0: Invalid `signature` in `thinking` block"},
		"redacted left out":  {account("a"), func(c *client) { m, b := c.message(1); m["content"] = append(b[:1:1], b[2:]...) }, nil, "messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound"},
		"redacted exchanged": {account("a"), func(c *client) { _, b := c.message(1); b[0], b[1] = b[1], b[0] }, nil, "messages.1.content.1: Invalid `signature` in `thinking` block. The block is bound"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := account("a")
			first.Redacted = true
			c := newClient(t, first)
			c.ask("hello")
			c.ask("again")
			c.add(user("one more"))
			c.server = newServer(t, tt.strict)
			tt.change(c)
			got := c.send()
			if got.Error.Message != tt.says && (tt.says == "" || !strings.HasPrefix(got.Error.Message, tt.says)) {
				t.Errorf("got the error %q, want %q", got.Error.Message, tt.says)
			}
			wantEqual(t, "transformations", append([]provider.Transformation(nil), got.Transformations...), tt.want)
		})
	}
}

// reasons returns that both thoughts of two answers were dropped for one reason.
func reasons(check string) []provider.Transformation {
	var out []provider.Transformation
	for _, path := range []string{"messages.1.content.0", "messages.1.content.1", "messages.3.content.0", "messages.3.content.1"} {
		out = append(out, provider.Transformation{Type: "thinking_dropped", Path: path, Reason: check + "_binding_mismatch"})
	}
	return out
}
