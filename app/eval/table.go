package eval

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// WriteTable writes the report for people: what was replayed, then a column for each
// policy; of one policy alone also what its compactions did.
func (r Report) WriteTable(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s in %s, %s\n", r.Source, many(r.Messages, "message"), many(r.Turns, "turn"), many(r.Tokens, "token"))
	fmt.Fprintf(b, "model %s, window %s", r.Model, number(r.Window))
	if len(r.Policies) > 0 {
		fmt.Fprintf(b, ", usable %s", number(r.Policies[0].Budget.Usable))
	}
	e := r.Everything
	fmt.Fprintf(b, "\nsending everything: %s in %s, the largest %s, %s of them cacheable; ",
		many(e.Tokens, "token"), many(e.Prompts, "prompt"), number(e.Largest), percent(e.CacheShare))
	if e.TooLargeFrom > 0 {
		fmt.Fprintf(b, "does not fit from turn %s on\n\n", number(e.TooLargeFrom))
	} else {
		fmt.Fprint(b, "fits to the end\n\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := r.columns(w); err != nil {
		return err
	}
	return r.remarks(w)
}

// row is a line of the table.
type row struct {
	name string
	cell func(Result) string
}

// rows are the lines of the table.
func (r Report) rows() []row {
	return []row{
		{"prompts sent", func(p Result) string { return number(p.Prompts) }},
		{"largest prompt", func(p Result) string { return number(p.Largest) }},
		{"  of usable", func(p Result) string { return percent(share(p.Largest, p.Budget.Usable)) }},
		{"  in turn", func(p Result) string { return number(p.LargestTurn) }},
		{"tokens sent", func(p Result) string { return number(p.Tokens) }},
		{"  of sending everything", func(p Result) string {
			if p.Failed != nil {
				return "–"
			}
			return percent(share(p.Tokens, r.Everything.Tokens))
		}},
		{"  cacheable prefix", func(p Result) string { return percent(p.CacheShare) }},
		{"  not in a cache", func(p Result) string { return number(p.Tokens - p.CachedTokens) }},
		{"summaries", func(p Result) string { return number(p.Summaries) }},
		{"summarizer tokens", func(p Result) string { return number(p.Summarizer.InputTokens + p.Summarizer.OutputTokens) }},
		{"last prompt", func(p Result) string { return number(p.Last) }},
		{"facts kept", func(p Result) string { return fmt.Sprintf("%d of %d", p.Facts.Kept, p.Facts.Planted) }},
		{"  word for word", func(p Result) string { return number(p.Facts.Prompt) }},
		{"  in the summary", func(p Result) string { return number(p.Facts.Summary) }},
		{"  by search_history", func(p Result) string { return number(p.Facts.Search) }},
		{"  lost", func(p Result) string { return number(len(p.Facts.Lost)) }},
	}
}

// columns writes the table.
func (r Report) columns(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	line := func(name string, cell func(Result) string) {
		// The first column alone is aligned to the left.
		fmt.Fprintf(t, "%-*s\t", labelWidth, name)
		for _, p := range r.Policies {
			fmt.Fprintf(t, "%s\t", cell(p))
		}
		fmt.Fprintln(t)
	}
	line("", func(p Result) string { return strings.ToUpper(p.Policy) })
	for _, row := range r.rows() {
		line(row.name, row.cell)
	}
	return t.Flush()
}

// labelWidth is how wide the first column is.
const labelWidth = 23

// How many lines of what a table does not hold all of.
const (
	shownCompactions = 20
	shownLost        = 10
)

// remarks writes what stands below the table.
func (r Report) remarks(w io.Writer) error {
	b := &strings.Builder{}
	for _, p := range r.Policies {
		if p.Failed != nil {
			fmt.Fprintf(b, "\n%s: the conversation ends in turn %d: %s (%s)\n", p.Policy, p.Failed.Turn, p.Failed.Message, p.Failed.Code)
		}
		if n := len(p.Facts.Lost); n > 0 {
			fmt.Fprintf(b, "\n%s lost:\n", p.Policy)
			for _, f := range p.Facts.Lost[:min(n, shownLost)] {
				fmt.Fprintf(b, "  %s: %s\n", f.Kind, f.Text)
			}
			more(b, n-shownLost)
		}
	}
	if len(r.Policies) == 1 {
		r.Policies[0].compactions(b)
	}
	fmt.Fprintf(b, "\nfacts: %s", map[string]string{
		FactsOfFile: "planted in the conversation", FactsGiven: "given", FactsOfLedger: "paths, commands, errors and URLs that code finds in the messages",
	}[r.FactsFrom])
	if len(r.Policies) > 0 {
		fmt.Fprintf(b, "; summarizer: %s", r.Policies[0].Summarizer.Name)
	}
	b.WriteString("\n")
	for _, n := range r.Notices {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	if r.idle() {
		b.WriteString("note: the conversation fits as it is, so that no policy has anything to do; a smaller --window shows what they would\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// idle reports whether every policy sent everything.
func (r Report) idle() bool {
	return r.Everything.TooLargeFrom == 0 && !slices.ContainsFunc(r.Policies, func(p Result) bool {
		return p.Failed != nil || p.Coverage.Verbatim != p.Coverage.Messages-p.Coverage.Excluded ||
			slices.ContainsFunc(p.Turns, func(t Turned) bool { return len(t.Compactions)+len(t.Rungs) > 0 })
	})
}

// compactions writes what the compactions did, one a line.
func (r Result) compactions(b *strings.Builder) {
	shown, all := 0, 0
	for _, t := range r.Turns {
		for _, c := range t.Compactions {
			if all++; shown == shownCompactions {
				continue
			}
			if shown++; shown == 1 {
				b.WriteString("\ncompactions:\n")
			}
			fmt.Fprintf(b, "  turn %s: %s\n", number(t.Turn), c.words())
		}
	}
	more(b, all-shown)
}

// words says what happened.
func (c Compaction) words() string {
	var parts []string
	if c.Trigger != "" {
		parts = append(parts, c.Trigger)
	}
	if c.TokensBefore > 0 {
		parts = append(parts, number(c.TokensBefore)+" → "+number(c.TokensAfter)+" tokens")
	}
	if c.MessagesCovered > 0 {
		parts = append(parts, "the summary covers "+many(c.MessagesCovered, "message"))
	}
	if c.Reason != "" {
		parts = append(parts, c.Reason)
	}
	event := strings.TrimPrefix(c.Event, "context.")
	if c.After {
		event += " after the answer"
	}
	return event + " (" + strings.Join(parts, ", ") + ")"
}

// more says how much is not shown.
func more(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "  … %s more (--json has all)\n", number(n))
	}
}

// number writes a number with commas between the thousands.
func number(n int) string {
	digits := strconv.Itoa(n)
	var parts []string
	for len(digits) > 3 {
		parts = append(parts, digits[len(digits)-3:])
		digits = digits[:len(digits)-3]
	}
	slices.Reverse(parts)
	return strings.Join(append([]string{digits}, parts...), ",")
}

// many writes a number of things.
func many(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return number(n) + " " + thing
}

// percent writes a share.
func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
