// Package story generates the sample conversations: invented people with real
// problems, at the length at which people and tools say things. The generator has a
// fixed seed and writes the same bytes every time; make samples writes the samples that
// package eval embeds.
//
// What a sample must not lose is marked where it is said, as ⟦kind|text|question⟧: the
// marks are taken out, and the message's metadata name the facts. A question is what a
// user would ask long after, in other words than those that were said.
package story

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"

	"bobbin/tests/seed"
)

// Sample is a conversation that was made up.
type Sample struct {
	Name string
	Data []byte // JSON lines
}

// Samples makes all samples.
func Samples() []Sample {
	return []Sample{{"chat", chat()}, {"coding", coding()}, {"cjk", cjk()}, {"incident", incident()}}
}

// fact is one thing that is planted.
type fact struct {
	Kind string `json:"kind"`
	Text string `json:"text"`
	Ask  string `json:"ask"`
}

// message is one line of a sample.
type message struct {
	Role       string    `json:"role"`
	Content    string    `json:"content"`
	ToolCalls  []call    `json:"tool_calls,omitempty"`
	ToolCallID string    `json:"tool_call_id,omitempty"`
	ToolName   string    `json:"tool_name,omitempty"`
	Metadata   *metadata `json:"metadata,omitempty"`
}

type metadata struct {
	Facts []fact `json:"facts"`
}

type call struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// teller tells one story.
type teller struct {
	*rand.Rand
	out   bytes.Buffer
	calls int
}

// tell returns a teller whose choices follow from the number.
func tell(number uint64) *teller { return &teller{Rand: seed.Fixed(number, 1889)} }

// mark matches ⟦kind|text|question⟧.
var mark = regexp.MustCompile(`⟦(\w+)\|([^⟧|]+)\|([^⟧|]+)⟧`)

// unmarked takes the marks out of a text and returns the facts that they planted.
func unmarked(text string) (string, []fact) {
	var facts []fact
	text = mark.ReplaceAllStringFunc(text, func(m string) string {
		part := mark.FindStringSubmatch(m)
		facts = append(facts, fact{part[1], part[2], part[3]})
		return part[2]
	})
	return text, facts
}

// write writes a line.
func (t *teller) write(m message, facts []fact) {
	if len(facts) > 0 {
		m.Metadata = &metadata{facts}
	}
	enc := json.NewEncoder(&t.out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		panic("story: " + err.Error()) // texts and numbers only
	}
}

// say writes a message of a role.
func (t *teller) say(role, text string) {
	text, facts := unmarked(strings.TrimSpace(text))
	t.write(message{Role: role, Content: text}, facts)
}

func (t *teller) system(text string)    { t.say("system", text) }
func (t *teller) user(text string)      { t.say("user", text) }
func (t *teller) assistant(text string) { t.say("assistant", text) }

// use is a tool call with its result.
type use struct {
	tool   string
	args   map[string]any
	result string
}

// uses writes an assistant's message that calls tools, at once, and their results.
func (t *teller) uses(text string, list ...use) {
	text, facts := unmarked(text)
	m := message{Role: "assistant", Content: text}
	for i := range list {
		t.calls++
		for name, value := range list[i].args {
			if s, ok := value.(string); ok {
				plain, more := unmarked(s)
				list[i].args[name], facts = plain, append(facts, more...)
			}
		}
		m.ToolCalls = append(m.ToolCalls, call{fmt.Sprintf("call_%04d", t.calls), list[i].tool, arguments(list[i].args)})
	}
	t.write(m, facts)
	for i, u := range list {
		content, facts := unmarked(u.result)
		t.write(message{Role: "tool", Content: content, ToolCallID: m.ToolCalls[i].ID, ToolName: u.tool}, facts)
	}
}

// arguments writes what a tool is called with; encoding/json sorts the names.
func arguments(args map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(args); err != nil {
		panic("story: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

// one returns one of the list.
func one[T any](t *teller, list []T) T { return list[t.IntN(len(list))] }

// some returns n of the list, in a new order.
func some[T any](t *teller, list []T, n int) []T {
	out := make([]T, 0, n)
	for _, i := range t.Perm(len(list))[:min(n, len(list))] {
		out = append(out, list[i])
	}
	return out
}

// between returns a number from low to high, both included.
func (t *teller) between(low, high int) int { return low + t.IntN(high-low+1) }

// fill puts values in the place of {names}.
func fill(text string, values map[string]string) string {
	var pairs []string
	for name, value := range values {
		pairs = append(pairs, "{"+name+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}
