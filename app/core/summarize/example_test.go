package summarize_test

import (
	"context"
	"fmt"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
)

// What stands from here to the end of the type is in docs/STRATEGIES.md.

// FirstLines is a strategy that keeps the first line of what each side said.
type FirstLines struct{}

// Summarize extends the summary by a line a message.
func (FirstLines) Summarize(_ context.Context, req summarize.Request) (summarize.Result, error) {
	lines := []string{req.Previous}
	for _, m := range req.Messages {
		if m.Role == core.RoleUser || m.Role == core.RoleAssistant && m.Content != "" {
			first, _, _ := strings.Cut(m.Content, "\n")
			lines = append(lines, fmt.Sprintf("- %s: %s", m.Role, first))
		}
	}
	content := strings.TrimSpace(strings.Join(lines, "\n"))
	return summarize.Result{Content: content, Strategy: "first_lines"}, nil
}

// End of what is in docs/STRATEGIES.md.

// A strategy decides what a summary says. That it fits, is smaller than what it
// replaces and holds no secret, the Summarizer around it sees to.
func ExampleStrategy() {
	s := summarize.New(FirstLines{}, counter{})
	res, err := s.Summarize(context.Background(), summarize.Request{
		Limit:    30, // tokens
		Previous: "- user: Build me a parser for dates, please.",
		Messages: []core.Message{
			{Seq: 3, Role: core.RoleUser, Content: "ISO dates only.\n" + strings.Repeat("And a lot of reasons. ", 40)},
			{Seq: 4, Role: core.RoleAssistant, Content: "Then " + strings.Repeat("so ", 20) + "be it.\nI begin."},
			{Seq: 5, Role: core.RoleUser, Content: "My password=hunter2-horse, by the way."},
		},
	})
	fmt.Println(res.Content)
	fmt.Println(res.Strategy, res.Tokens <= 30, err)
	// Output:
	// …
	// - user: My password=[redacted: password], by the way.
	// first_lines true <nil>
}
