package contextwindow_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	cw "bobbin/app/core/contextwindow"
	"bobbin/app/core/llm"
)

// A run's instructions are appended where they differ from those that the prompt has, and are
// withdrawn by a run without any. A model that does not take system messages, or does not bind its
// thoughts, has them in the system prompt.
func TestRunInstructionsAreAppended(t *testing.T) {
	t.Parallel()
	binds := llm.Info{Name: "m", Provider: "anthropic", Prefix: llm.PrefixRefuses, ThoughtOrigin: "anthropic/m", SystemMessages: true}
	free, learned := binds, binds
	free.Prefix, learned.SystemMessages = llm.PrefixFree, false
	const title = "[Instructions from here on, in place of earlier ones that were added in this way:]\n"
	for name, c := range map[string]struct {
		model         llm.Info
		earlier, this string
		want          string
	}{
		"none before":        {binds, "", "Be brief.", "user assistant user [Be brief.]"},
		"the same":           {binds, "Be brief.", "Be brief.", "user [Be brief.] assistant user"},
		"others":             {binds, "Be brief.", "Be long.", "user [Be brief.] assistant user [Be long.]"},
		"none":               {binds, "Be brief.", "", "user [Be brief.] assistant user [-]"},
		"never any":          {binds, "", "", "user assistant user"},
		"a free model":       {free, "Be brief.", "Be long.", "Be long. user assistant user"},
		"no system messages": {learned, "Be brief.", "Be long.", "Be long. user assistant user"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			thought := core.Part{Type: core.PartReasoning, Signature: "s", Tokens: 10, Origin: "anthropic/m", Prefix: "p"}
			if c.earlier != "" {
				thought.Instructions = 100
			}
			log := []core.Message{
				{ID: "1", Seq: 1, RunID: "r", Role: core.RoleUser, Content: "one", TokenCount: 5},
				{ID: "2", Seq: 2, RunID: "r", Role: core.RoleAssistant, Content: "two", TokenCount: 5, Parts: []core.Part{thought}},
				{ID: "3", Seq: 3, Role: core.RoleUser, Content: "three", TokenCount: 5},
			}
			parts := cw.Parts{Instructions: c.this, Model: c.model, Messages: map[core.MessageID]core.Message{}, Repeated: map[core.RunID]string{"r": c.earlier}}
			in := cw.Input{Policy: preset(t, "off"), Model: cw.Limits{Window: 8192}, Binds: c.model.Prefix.Binds(), System: cw.SystemTokens(parts, quarter{})}
			for i, m := range log {
				parts.Messages[m.ID] = m
				if i < 2 {
					in.History = append(in.History, cw.ItemOf(m, c.model, quarter{}))
				} else {
					in.Run = append(in.Run, cw.ItemOf(m, c.model, quarter{}))
				}
			}
			d, _ := cw.Plan(in)
			p := cw.Assemble(parts, d, quarter{})
			got := ""
			for _, block := range p.System {
				got += block + " "
			}
			for i, m := range p.Messages {
				if i > 0 {
					got += " "
				}
				switch {
				case m.Role != core.RoleSystem:
					got += string(m.Role)
				case m.Content == "[The instructions that were added above no longer apply.]":
					got += "[-]"
				default:
					got += fmt.Sprintf("[%s]", m.Content[len(title):])
				}
			}
			if used := p.Sent.Used(d); got != c.want || used > d.Total {
				t.Errorf("got %q with %d tokens, planned %d; want %q", got, used, d.Total, c.want)
			}
		})
	}
}
