package chat_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/chat"
	"bobbin/app/core"
)

// What people ask of a context is checked, cleaned and counted before it is planned.
func TestContextControl(t *testing.T) {
	t.Parallel()
	h := chat.New(chat.Options{Agents: catalog{}, FindModel: registry{}.Get, Counter: counter{}, ContextPlanner: keeper{}, Limits: chat.Limits{Message: 100}})
	ctx := t.Context()
	plan, err := h.DryRun(ctx, ann, "s", core.PlanPreview{Model: "demo", Policy: "ratio", Content: "the\x00 plan"})
	if err != nil || plan.Tokens != len("the\uFFFD plan") || plan.Context.Model != "demo" || plan.Context.Policy != "ratio" || plan.Context.Reasons[0] != "the\uFFFD plan" {
		t.Errorf("got %+v and %v, want the text cleaned and counted", plan, err)
	}
	for name, tt := range map[string]struct {
		ask  core.PlanPreview
		kind error
		says string
	}{
		"model":  {core.PlanPreview{Model: "nobody"}, core.ErrInvalid, `model cannot be used: model "nobody" is not known`},
		"policy": {core.PlanPreview{Policy: "budge"}, core.ErrInvalid, `"budge" does not exist (did you mean budget?); the policies are window, budget`},
		"nobody": {core.PlanPreview{Policy: "nothing like it"}, core.ErrInvalid, "does not exist; the policies are window"},
		"text":   {core.PlanPreview{Content: strings.Repeat("x", 101)}, core.ErrTooLarge, "at most 100"},
	} {
		if _, err := h.DryRun(ctx, ann, "s", tt.ask); !errors.Is(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want %q", name, err, tt.says)
		}
	}
	if s, err := h.EditSummary(ctx, ann, "s", core.SummaryEdit{Content: "a\x00", Version: 3}); err != nil || s.Content != "a\uFFFD" || s.Version != 3 {
		t.Errorf("edit: got %+v and %v", s, err)
	}
	if _, err := h.EditSummary(ctx, ann, "s", core.SummaryEdit{Content: strings.Repeat("x", 101)}); !errors.Is(err, core.ErrTooLarge) || !strings.Contains(err.Error(), "the summary has 101 bytes") {
		t.Errorf("edit: got %v, want ErrTooLarge", err)
	}
}
