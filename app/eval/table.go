package eval

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"bobbin/app/core"
)

// WriteTable writes the report for people: what was replayed, then a column for each
// policy; of one policy alone also what its compactions did.
func (r Report) WriteTable(w io.Writer) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "%s: %s in %s, %s\n", r.Source, formatCount(r.Messages, "message"), formatCount(r.Turns, "turn"), formatCount(r.Tokens, "token"))
	fmt.Fprintf(b, "model %s, window %s", r.Model, core.Number(r.Window))
	if len(r.Policies) > 0 {
		fmt.Fprintf(b, ", usable %s", core.Number(r.Policies[0].Budget.Usable))
	}
	e := r.Everything
	fmt.Fprintf(b, "\nsending everything: %s in %s, the largest %s, %s of them cacheable; ",
		formatCount(e.Tokens, "token"), formatCount(e.Prompts, "prompt"), core.Number(e.Largest), formatPercent(e.CacheShare))
	if e.TooLargeFrom > 0 {
		fmt.Fprintf(b, "does not fit from turn %s on\n\n", core.Number(e.TooLargeFrom))
	} else {
		fmt.Fprint(b, "fits to the end\n\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return err
	}
	if err := r.writeColumns(w); err != nil {
		return err
	}
	return r.writeRemarks(w)
}

// unaskedRow is the line that only facts without questions need.
const unaskedRow = "  search not asked"

// writeColumns writes the table.
func (r Report) writeColumns(w io.Writer) error {
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
	allAsked := !slices.ContainsFunc(r.Policies, func(p Result) bool { return p.Facts.countUnasked() > 0 })
	for _, row := range []struct {
		name string
		cell func(Result) string
	}{
		{"prompts sent", func(p Result) string { return core.Number(p.Prompts) }},
		{"largest prompt", func(p Result) string { return core.Number(p.Largest) }},
		{"  of usable", func(p Result) string { return formatPercent(ratioOf(p.Largest, p.Budget.Usable)) }},
		{"  in turn", func(p Result) string { return core.Number(p.LargestTurn) }},
		{"tokens sent", func(p Result) string { return core.Number(p.Tokens) }},
		{"  of sending everything", func(p Result) string {
			if p.Failed != nil {
				return "–"
			}
			return formatPercent(ratioOf(p.Tokens, r.Everything.Tokens))
		}},
		{"  cacheable prefix", func(p Result) string { return formatPercent(p.CacheShare) }},
		{"  not in a cache", func(p Result) string { return core.Number(p.Tokens - p.CachedTokens) }},
		{"summaries", func(p Result) string { return core.Number(p.Summaries) }},
		{"summarizer tokens", func(p Result) string { return core.Number(int(p.Summarizer.InputTokens + p.Summarizer.OutputTokens)) }},
		{"last prompt", func(p Result) string { return core.Number(p.Last) }},
		{"facts reachable", func(p Result) string { return fmt.Sprintf("%d of %d", p.Facts.Reachable, p.Facts.Planted) }},
		{"  in the prompt", func(p Result) string { return core.Number(p.Facts.Prompt) }},
		{"  in the summary", func(p Result) string { return core.Number(p.Facts.Summary) }},
		{"  by search, first 5", func(p Result) string { return core.Number(p.Facts.First5) }},
		{"  by search, 6 to 20", func(p Result) string { return core.Number(p.Facts.First20) }},
		{"  not at all", func(p Result) string { return core.Number(len(p.Facts.Unreachable) - p.Facts.countUnasked()) }},
		{unaskedRow, func(p Result) string { return core.Number(p.Facts.countUnasked()) }},
		{"search alone, first 5", func(p Result) string { return fmt.Sprintf("%d of %d", p.Facts.SearchAlone.First5, p.Facts.Asked) }},
		{"search alone, first 20", func(p Result) string { return fmt.Sprintf("%d of %d", p.Facts.SearchAlone.First20, p.Facts.Asked) }},
	} {
		if row.name == unaskedRow && allAsked {
			continue
		}
		line(row.name, row.cell)
	}
	return t.Flush()
}

// labelWidth is how wide the first column is.
const labelWidth = 23

// How many lines of what a table does not hold all of.
const (
	shownCompactions = 20
	shownUnreachable = 10
	shownText        = 160 // bytes of a fact with its question
)

// writeRemarks writes what stands below the table.
func (r Report) writeRemarks(w io.Writer) error {
	b := &strings.Builder{}
	for _, p := range r.Policies {
		if p.Failed != nil {
			fmt.Fprintf(b, "\n%s: the conversation ends in turn %d: %s (%s)\n", p.Policy, p.Failed.Turn, p.Failed.Message, p.Failed.Code)
		}
	}
	if len(r.Policies) == 1 {
		list := r.Policies[0].Facts.Unreachable
		for i, f := range list[:min(len(list), shownUnreachable)] {
			if i == 0 {
				b.WriteString("\nnot reachable:\n")
			}
			text := f.Kind + ": " + f.Text
			if f.Ask != "" {
				text = f.Ask + " " + f.Text
			}
			fmt.Fprintf(b, "  %s\n", core.Clip(strings.Join(strings.Fields(text), " "), shownText))
		}
		moreLine(b, len(list)-shownUnreachable)
		r.Policies[0].writeCompactions(b)
	}
	fmt.Fprintf(b, "\nfacts: %s", map[string]string{
		FactsOfFile: "planted in the conversation", FactsGiven: "given", FactsOfLedger: "paths, commands, errors and URLs that code finds in the messages",
	}[r.FactsFrom])
	if len(r.Policies) > 0 {
		b.WriteString(r.Policies[0].Facts.unaskedNote())
		fmt.Fprintf(b, "; summarizer: %s", r.Policies[0].Summarizer.Name)
	}
	b.WriteString("\n")
	for _, n := range r.Notices {
		fmt.Fprintf(b, "note: %s\n", n)
	}
	if r.Everything.TooLargeFrom == 0 && !slices.ContainsFunc(r.Policies, func(p Result) bool {
		return p.Failed != nil || p.Coverage.Verbatim != p.Coverage.Messages-p.Coverage.Excluded ||
			slices.ContainsFunc(p.Turns, func(t Turned) bool { return len(t.Compactions)+len(t.Rungs) > 0 })
	}) {
		b.WriteString("note: the conversation fits as it is, so that no policy has anything to do; a smaller --window shows what they would\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// unaskedNote says of how many facts search is not asked.
func (f Found) unaskedNote() string {
	switch n := f.Planted - f.Asked; {
	case n == 0:
		return ""
	case n == f.Planted:
		return "; they have no questions, so that search is not asked for them"
	default:
		return fmt.Sprintf("; %s without a question, for which search is not asked", core.Number(n))
	}
}

// writeCompactions writes what the compactions did, one a line.
func (r Result) writeCompactions(b *strings.Builder) {
	shown, all := 0, 0
	for _, t := range r.Turns {
		for _, c := range t.Compactions {
			if all++; shown == shownCompactions {
				continue
			}
			if shown++; shown == 1 {
				b.WriteString("\ncompactions:\n")
			}
			var parts []string
			if c.Trigger != "" {
				parts = append(parts, c.Trigger)
			}
			if c.TokensBefore > 0 {
				parts = append(parts, core.Number(c.TokensBefore)+" → "+core.Number(c.TokensAfter)+" tokens")
			}
			if c.MessagesCovered > 0 {
				parts = append(parts, "the summary covers "+formatCount(c.MessagesCovered, "message"))
			}
			if c.Reason != "" {
				parts = append(parts, c.Reason)
			}
			event := strings.TrimPrefix(c.Event, "context.")
			if c.After {
				event += " after the answer"
			}
			fmt.Fprintf(b, "  turn %s: %s\n", core.Number(t.Turn), event+" ("+strings.Join(parts, ", ")+")")
		}
	}
	moreLine(b, all-shown)
}

// moreLine says how much is not shown.
func moreLine(b *strings.Builder, n int) {
	if n > 0 {
		fmt.Fprintf(b, "  … %s more (--json has all)\n", core.Number(n))
	}
}

// formatCount writes a number of things.
func formatCount(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return core.Number(n) + " " + thing
}

// formatPercent writes a share.
func formatPercent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }
