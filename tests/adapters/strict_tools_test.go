package adapters_test

import (
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/provider"
)

// changeTools asks a question behind which the tools change, and reports which tool the answer calls;
// empty = none.
func (k *thinker) changeTools(question string, change llm.Message) (called string) {
	k.t.Helper()
	change.Role = core.RoleSystem
	k.add(llm.Message{Role: core.RoleUser, Content: question})
	k.add(change)
	for k.next() {
		called = k.answer.ToolCalls[0].Name
	}
	return called
}

// A tool is added, removed and added again in the conversation: the model may call it when it is there, no
// thought is lost, and no request refused.
func TestStrictToolChanges(t *testing.T) {
	t.Parallel()
	scales := llm.Message{AddedTools: []llm.ToolSpec{{Name: "scales", Description: "Weighs."}}}
	const question = "use the tool scales"
	for name, k := range map[string]*thinker{
		"Anthropic": newThinker(t, provider.Strict{AlwaysThinks: true}, "claude-opus-5-5", 2_048),
		"OpenAI":    newResponsesThinker(t, provider.Strict{}, gpt),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k.t = t
			k.ask("hello")
			got := []string{k.changeTools(question, scales)}
			if k.opened().Info().ToolChanges == llm.ToolsChangeable {
				got = append(got, k.changeTools(question, llm.Message{RemovedTools: []string{"scales"}}), k.changeTools(question, scales))
			}
			for i, called := range got {
				if want := []string{"scales", "calculator", "scales"}[i]; called != want {
					t.Errorf("change %d: got a call of %q, want %s", i, called, want)
				}
			}
			k.wantAllValid()
		})
	}
}
