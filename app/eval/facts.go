package eval

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/summarize"
)

// Fact is something that was said and should not be lost.
type Fact struct {
	Kind string `json:"kind"`          // path, command, error, url, name, or fact for any other
	Text string `json:"text"`          // as it was said; case and blanks do not count
	Ask  string `json:"ask,omitempty"` // the question whose answer it is; search is asked for it. Empty = search does not count
}

// FactKinds are the kinds of facts, in the order in which they are shown.
func FactKinds() []string {
	return []string{summarize.FactPath, summarize.FactCommand, summarize.FactError, summarize.FactURL, factName, factOther}
}

const (
	factName  = "name"
	factOther = "fact"
)

// Where the facts of a report come from.
const (
	FactsOfFile   = "file"   // planted: the conversation's own metadata name them
	FactsGiven    = "given"  // a list beside the conversation
	FactsOfLedger = "ledger" // found by the code that keeps the ledger; they have no questions
)

// Bounds of facts. Each is looked for in the last prompt and by search_history.
const (
	maxFacts    = 500
	maxFactText = 500 // bytes of a text, and of a question
	maxFactFile = 1 << 20
)

// UnmarshalJSON reads {"kind": …, "text": …, "ask": …}, or a text alone.
func (f *Fact) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*f = parseFact(text)
		return nil
	}
	type plain Fact
	var p plain
	if err := json.Unmarshal(raw, &p); err != nil {
		return fmt.Errorf(`a fact is a text, or {"kind": "path", "text": "go.mod", "ask": "Which file names the dependencies?"}`)
	}
	*f = Fact(p)
	f.Ask = strings.TrimSpace(f.Ask)
	if f.Kind == "" {
		f.Kind = factOther
	}
	return nil
}

// parseFact reads a line such as "path: go.mod"; without a kind it is any fact.
func parseFact(line string) Fact {
	if kind, text, ok := strings.Cut(line, ":"); ok && slices.Contains(FactKinds(), strings.TrimSpace(kind)) {
		return Fact{Kind: strings.TrimSpace(kind), Text: strings.TrimSpace(text)}
	}
	return Fact{Kind: factOther, Text: strings.TrimSpace(line)}
}

// PlantedFacts returns the facts that the metadata of messages name, each of which
// its own message must say.
func PlantedFacts(messages []core.Message) ([]Fact, error) {
	var facts []Fact
	for i, m := range messages {
		if !bytes.Contains(m.Metadata, []byte(`"facts"`)) {
			continue
		}
		var meta struct {
			Facts []Fact `json:"facts"`
		}
		if err := json.Unmarshal(m.Metadata, &meta); err != nil {
			return nil, core.Errorf(core.ErrInvalid, "message %d: metadata.facts: %v", i+1, err)
		}
		said := textOf(m)
		for n, f := range meta.Facts {
			if err := f.checkFact(); err != nil {
				return nil, core.Errorf(core.ErrInvalid, "message %d: metadata.facts[%d] %v", i+1, n, err)
			}
			if !hasFact(said, f) {
				return nil, core.Errorf(core.ErrInvalid, "message %d does not say its metadata.facts[%d]: %q", i+1, n, f.Text)
			}
		}
		facts = append(facts, meta.Facts...)
	}
	return distinctFacts(facts), nil
}

// ReadFacts reads a list of facts: a JSON list, in which they can have questions, or one
// fact a line, with or without its kind ("path: go.mod"). Blank lines and those that begin with # do not count.
func ReadFacts(r io.Reader) ([]Fact, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFactFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFactFile {
		return nil, core.Errorf(core.ErrTooLarge, "the list of facts is larger than %d bytes", maxFactFile)
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	var facts []Fact
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		if err := json.Unmarshal(data, &facts); err != nil {
			return nil, core.Errorf(core.ErrInvalid, "the list of facts: %v", err)
		}
		for n, f := range facts {
			if err := f.checkFact(); err != nil {
				return nil, core.Errorf(core.ErrInvalid, "fact %d %v", n+1, err)
			}
		}
		return distinctFacts(facts), nil
	}
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, maxFactFile+1)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		f := parseFact(line)
		if err := f.checkFact(); err != nil {
			return nil, core.Errorf(core.ErrInvalid, "line %d of the list of facts %v", n, err)
		}
		facts = append(facts, f)
	}
	return distinctFacts(facts), lines.Err()
}

// checkFact returns what is wrong with the fact.
func (f Fact) checkFact() error {
	switch {
	case !slices.Contains(FactKinds(), f.Kind):
		return fmt.Errorf("is of no known kind: %q; use one of %s", core.Clip(f.Kind, 40), strings.Join(FactKinds(), ", "))
	case plainText(f.Text) == "":
		return fmt.Errorf("is empty")
	case len(f.Text) > maxFactText:
		return fmt.Errorf("has %d bytes; at most %d are allowed", len(f.Text), maxFactText)
	case len(f.Ask) > maxFactText:
		return fmt.Errorf("has a question of %d bytes; at most %d are allowed", len(f.Ask), maxFactText)
	case strings.Contains(plainText(f.Ask), plainText(f.Text)):
		return fmt.Errorf("has a question that says the fact itself, so that finding it proves nothing; ask in other words: %q", core.Clip(f.Ask, 80))
	}
	return nil
}

// LedgerFacts returns what the ledger's own code finds in the messages; of very many
// an even choice.
func LedgerFacts(messages []core.Message) []Fact {
	all := textOf(messages...)
	var facts []Fact
	for _, found := range summarize.Facts(messages) {
		if f := (Fact{Kind: found.Kind, Text: found.Text}); f.checkFact() == nil && hasFact(all, f) {
			facts = append(facts, f)
		}
	}
	facts = distinctFacts(facts)
	if len(facts) <= maxFacts {
		return facts
	}
	chosen := make([]Fact, maxFacts)
	for i := range chosen {
		chosen[i] = facts[i*len(facts)/maxFacts]
	}
	return chosen
}

// CheckFacts returns an error unless every fact is said in the messages, and there
// are not too many.
func CheckFacts(facts []Fact, messages []core.Message) error {
	if len(facts) > maxFacts {
		return core.Errorf(core.ErrInvalid, "there are %d facts; at most %d can be looked for", len(facts), maxFacts)
	}
	all := textOf(messages...)
	for _, f := range facts {
		if !hasFact(all, f) {
			return core.Errorf(core.ErrInvalid, "no message of the conversation says the fact %q (%s)", f.Text, f.Kind)
		}
	}
	return nil
}

// distinctFacts returns the facts, each text once, with the first question that one has.
func distinctFacts(facts []Fact) []Fact {
	asks := map[string]string{}
	for _, f := range facts {
		key := plainText(f.Text)
		asks[key] = cmp.Or(asks[key], f.Ask)
	}
	known := map[string]bool{}
	var out []Fact
	for _, f := range facts {
		if key := plainText(f.Text); !known[key] {
			known[key], f.Ask = true, asks[key]
			out = append(out, f)
		}
	}
	return out
}

// How far down the search counts. search_history shows an agent fewer than the last at
// once.
const (
	firstHits = 5
	allHits   = 20
)

// isSummary reports whether the block of a prompt stands for messages that are not in it.
func isSummary(block string) bool {
	return strings.Contains(block, "<conversation_summary>") || strings.Contains(block, "<work_notes>")
}

// rankInSearch returns the place among the quotations that search_history gives for the fact's question
// of the first one that tells the fact; 0 = none does, the fact has no question, or the agent no such tool.
func (st *stage) rankInSearch(ctx context.Context, f Fact) (int, error) {
	if f.Ask == "" || !slices.Contains(st.agent.Tools, core.ToolSearchHistory) {
		return 0, nil
	}
	page, err := tools.FindHistory(ctx, st.AgentSearch, st.session, core.SearchQuery{PageQuery: core.PageQuery{Limit: allHits}, Text: f.Ask})
	if errors.Is(err, core.ErrInvalid) {
		err = nil // the model would read why and ask in other words
	}
	return 1 + slices.IndexFunc(page.Items, func(h core.SearchHit) bool {
		return hasFact(textOf(core.Message{Content: prompttext.Harmless(h.Excerpt)}), f)
	}), err
}

// textOf returns what the messages say, but those of the system, to look for facts in: each on a line, as no fact is
// found across two.
func textOf(messages ...core.Message) string {
	var b strings.Builder
	for _, m := range messages {
		if m.Role != core.RoleSystem {
			parts := append([]string{m.Content}, jsonTexts(m.Content)...) // what is JSON also as the values that it holds, without its escapes
			for _, c := range m.ToolCalls {
				parts = append(append(parts, c.Arguments), jsonTexts(c.Arguments)...)
			}
			b.WriteString(plainText(strings.Join(parts, "\n")) + "\n")
		}
	}
	return b.String()
}

// hasFact reports whether a text has the fact word for word.
func hasFact(text string, f Fact) bool { return strings.Contains(text, plainText(f.Text)) }

// plainText returns the text in lower case, its blanks and line breaks as single blanks.
func plainText(s string) string { return strings.ToLower(strings.Join(strings.Fields(s), " ")) }

// jsonTexts returns the texts in a JSON object or list; none in anything else, and in
// what has no escapes.
func jsonTexts(raw string) []string {
	raw = strings.TrimSpace(raw)
	if raw == "" || !strings.ContainsRune("{[", rune(raw[0])) || !strings.Contains(raw, `\`) {
		return nil
	}
	var v any
	if json.Unmarshal([]byte(raw), &v) != nil {
		return nil
	}
	return textsOf(v)
}

// textsOf returns the texts in a JSON value.
func textsOf(v any) []string {
	var out []string
	switch v := v.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	case map[string]any:
		for _, item := range v {
			out = append(out, textsOf(item)...)
		}
	}
	return out
}
