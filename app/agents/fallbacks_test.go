package agents_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// A profile has the agent's fallback models in their order, without the model that
// is used anyway and without those that are gone.
func TestProfileHasFallbacks(t *testing.T) {
	t.Parallel()
	p := newProfiles(t, catalog{"a": {Name: "a", Model: "one", FallbackModels: []string{"two", "gone", "three"}}}, contextwindow.Global{})
	for asked, want := range map[string][]string{
		"": {"two", "three"}, "two": {"three"}, "four": {"two", "three"},
	} {
		profile, err := p.Profile(t.Context(), core.Session{Agent: "a"}, asked)
		if err != nil {
			t.Fatalf("profile: %v", err)
		}
		var got []string
		for _, m := range profile.Fallbacks {
			got = append(got, m.Info().Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("fallbacks when %q is asked for (-want +got):\n%s", asked, diff)
		}
	}
}
