package summarize_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/app/core/tokens"
	"bobbin/tests/must"
)

// A summary without a model says who wrote what it quotes.
func TestExtractiveNamesSpeakers(t *testing.T) {
	t.Parallel()
	count := tokens.NewCounter()
	for _, named := range []bool{false, true} {
		var list []core.Message
		for i, who := range []string{"Ann", "Ben", "Ann"} {
			list = append(list,
				core.Message{Seq: int64(2*i + 1), Role: core.RoleUser, Author: who, Named: named, Content: fmt.Sprintf("Please order %d bolts for the red pump.", 40+i)},
				core.Message{Seq: int64(2*i + 2), Role: core.RoleAssistant, Content: "Ordered them at the shop in Leeds."})
		}
		res := must.Get(summarize.New(summarize.NewExtractive(count), count).Summarize(t.Context(), summarize.Request{Messages: list, Limit: 200, Replaces: 1000}))(t)
		for _, line := range []string{`"Ben: Please order 41 bolts for the red pump." [3]`, `"Ann: Please order 42 bolts for the red pump." [5]`} {
			if got := strings.Contains(res.Content, line); got != named {
				t.Errorf("named %v: %q in the summary: %v\n%s", named, line, got, res.Content)
			}
		}
	}
}
