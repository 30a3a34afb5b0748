package provider_test

import (
	"strings"
	"testing"

	"bobbin/tests/provider"
)

// system returns a system message.
func system(text string) object {
	return object{"role": "system", "content": list{object{"type": "text", "text": text}}}
}

// A system message is taken between the user's and the assistant's, and counts in the prefix.
func TestStrictSystemMessages(t *testing.T) {
	t.Parallel()
	c := newClient(t, account("a"))
	c.add(user("one"), system("Be brief."))
	c.answer(nil)
	c.add(user("two"))
	if got := c.answer(nil); len(got.Transformations) > 0 {
		t.Errorf("got %+v, want the thought verified", got.Transformations)
	}
	m, _ := c.message(1)
	m["content"] = list{object{"type": "text", "text": "Be long."}}
	if got := c.send(nil); got.Status != 400 || !strings.Contains(got.Error.Message, "bound to a different conversation") {
		t.Errorf("got %d %q with another system message, want a refusal", got.Status, got.Error.Message)
	}
}

// Elsewhere it is refused, and by models that do not bind thoughts.
func TestStrictSystemMessagesAreRefused(t *testing.T) {
	t.Parallel()
	said := object{"role": "assistant", "content": list{object{"type": "text", "text": "said"}}}
	image := object{"role": "system", "content": list{object{"type": "image"}}}
	for name, tt := range map[string]struct {
		model    string
		messages list
		want     string
	}{
		"first":                 {model, list{system("s"), user("one")}, "must directly follow"},
		"behind the assistant":  {model, list{user("one"), said, system("s")}, "must directly follow"},
		"behind another":        {model, list{user("one"), system("s"), system("s")}, "precede one with role 'assistant'"},
		"before the user":       {model, list{user("one"), system("s"), user("two")}, "precede one with role 'assistant'"},
		"with an image":         {model, list{user("one"), image}, "block of type image"},
		"of an earlier model":   {"claude-opus-4-6", list{user("one"), system("s")}, "not supported on this model"},
		"of a model of no name": {"claude-latest", list{user("one"), system("s")}, "not supported on this model"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newClient(t, provider.Strict{Account: "a", Secret: "secret"})
			c.add(tt.messages...)
			if got := c.send(object{"model": tt.model}); got.Status != 400 || !strings.Contains(got.Error.Message, tt.want) {
				t.Errorf("got %d %q, want %q", got.Status, got.Error.Message, tt.want)
			}
		})
	}
}
