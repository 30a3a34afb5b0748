package adapters_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestShowAdapters prints how each scenario ends with each adapter: in the outcome that is wanted of both, or not.
func TestShowAdapters(t *testing.T) {
	all := dialects()
	row := func(name string, cells ...string) string {
		line := fmt.Sprintf("%-56s", name)
		for _, cell := range cells {
			line += fmt.Sprintf("  %-11s", cell)
		}
		return strings.TrimSpace(line)
	}
	var names []string
	for _, d := range all {
		names = append(names, d.label())
	}
	lines := []string{row("scenario", append(names, "wanted")...)}
	same := 0
	for _, sc := range scenarios() {
		cells := make([]string, 0, len(all)+1)
		for _, d := range all {
			diff := sc.play(t, d)
			if diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", sc.name, d.label(), diff)
				cells = append(cells, "DIFFERS")
				continue
			}
			same++
			cells = append(cells, "as wanted")
		}
		lines = append(lines, row(sc.name, append(cells, sc.want.short())...))
	}
	lines = append(lines, fmt.Sprintf("%d scenarios, %d of %d outcomes as wanted", len(scenarios()), same, len(scenarios())*len(all)))
	fmt.Println(strings.Join(lines, "\n")) //nolint:forbidigo // what the target is for
}

// short says the outcome in a few words.
func (o outcome) short() string {
	var words []string
	if o.Kind != "" {
		words = append(words, "error "+string(o.Kind))
	}
	if o.Status > 0 {
		words = append(words, fmt.Sprint("status ", o.Status))
	}
	if o.RetryAfter > 0 {
		words = append(words, "wait "+o.RetryAfter.String())
	}
	if o.Limit > 0 {
		words = append(words, fmt.Sprintf("limit %d, requested %d", o.Limit, o.Requested))
	}
	if o.Cause != "" {
		words = append(words, o.Cause)
	}
	for _, part := range []struct{ name, text string }{{"text", o.Text}, {"thoughts", o.Reasoning}, {"calls", o.Calls}} {
		if part.text != "" {
			words = append(words, fmt.Sprintf("%s %.40q", part.name, part.text))
		}
	}
	if o.Finish != "" {
		words = append(words, "finish "+string(o.Finish))
	}
	if u := o.Usage; u != nil {
		words = append(words, fmt.Sprintf("tokens in %d (cache read %d, write %d) out %d", u.InputTokens, u.CacheReadTokens, u.CacheWriteTokens, u.OutputTokens))
	}
	if o.Requests > 0 {
		words = append(words, fmt.Sprint("requests ", o.Requests))
	}
	return strings.Join(words, ", ")
}
