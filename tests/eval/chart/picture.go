package chart

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/eval"
)

// headroom is how far above the usable window the picture goes.
const headroom = 1.12

// Draw returns a chart of the report: the prompts of each turn under each policy, what sending
// everything would be, and the limits.
func Draw(r eval.Report) []byte {
	if len(r.Policies) == 0 {
		return Chart{Title: r.Source}.SVG()
	}
	first := r.Policies[0]
	c := Chart{
		Title:    fmt.Sprintf("%s: prompt size, turn by turn", r.Source),
		Subtitle: fmt.Sprintf("%s in %s, %s, in the window of %s (%s)", Count(r.Messages, "message"), Count(r.Turns, "turn"), Count(r.Tokens, "token"), r.Model, core.Number(r.Window)),
		XLabel:   "turn", YLabel: "tokens of a prompt", Marks: "summaries", Caption: caption(r),
	}
	all := Line{Name: "sending everything", Faint: true}
	for _, t := range slices.MaxFunc(r.Policies, func(a, b eval.Result) int { return a.Prompts - b.Prompts }).Turns {
		for i, p := range t.Prompts {
			all.Points = append(all.Points, pointOf(t, i, p.Everything))
		}
	}
	c.Lines = append(c.Lines, all)
	high := first.Budget.Usable
	for _, p := range r.Policies {
		c.Lines = append(c.Lines, lineOf(p))
		high = max(high, p.Largest, p.Budget.Usable)
	}
	c.Rules = rules(r)
	if all.Points != nil && r.Everything.Largest < high/2 { // a short conversation in a large window
		c.Top, c.Rules = 0, nil
		return c.SVG()
	}
	c.Top = headroom * float64(high)
	return c.SVG()
}

// caption says how many of the facts are reachable at the end.
func caption(r eval.Report) string {
	if r.Policies[0].Facts.Planted == 0 {
		return ""
	}
	parts := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		parts[i] = fmt.Sprintf("%s %d", p.Policy, p.Facts.Reachable)
	}
	return fmt.Sprintf("facts reachable at the end, of %d: %s", r.Policies[0].Facts.Planted, strings.Join(parts, ", "))
}

// lineOf returns the line of a policy, marked where a summary came into use.
func lineOf(r eval.Result) Line {
	l := Line{Name: r.Policy, Marked: r.Summaries}
	fresh := false // a summary that no prompt has yet
	for _, t := range r.Turns {
		broken, least := -1, 1.0
		for i, p := range t.Prompts {
			l.Points = append(l.Points, pointOf(t, i, p.Tokens))
			if kept := float64(p.CachedTokens) / float64(max(p.Tokens, 1)); kept < least {
				broken, least = i, kept
			}
		}
		in, after := t.Summarized()
		if len(t.Prompts) == 0 {
			fresh = fresh || after
			continue
		}
		if fresh {
			l.Marks = append(l.Marks, pointOf(t, 0, t.Prompts[0].Tokens))
		}
		if in && broken >= 0 && (broken > 0 || !fresh) { // a new summary is where the prompt begins anew
			l.Marks = append(l.Marks, pointOf(t, broken, t.Prompts[broken].Tokens))
		}
		fresh = after
	}
	return l
}

// pointOf returns where a prompt of the turn stands: a turn ends at its number, and its
// prompts are evenly before that.
func pointOf(t eval.Turned, i, size int) Point {
	return Point{X: float64(t.Turn-1) + float64(i+1)/float64(len(t.Prompts)), Y: float64(size)}
}

// rules returns the limits that hold for all policies that have them.
func rules(r eval.Report) []Rule {
	usable := r.Policies[0].Budget.Usable
	out := []Rule{{Name: "usable " + core.Number(usable), Y: float64(usable)}}
	var shared *eval.Budget
	for _, p := range r.Policies {
		switch b := p.Budget; {
		case b.Trigger == 0:
		case shared == nil:
			shared = &b
		case *shared != b:
			return out
		}
	}
	if shared == nil {
		return out
	}
	if shared.Trigger == usable {
		out[0].Name = "usable = trigger " + core.Number(usable)
	} else {
		out = append(out, Rule{Name: "trigger " + core.Number(shared.Trigger), Y: float64(shared.Trigger)})
	}
	return append(out, Rule{Name: "landing " + core.Number(shared.Landing), Y: float64(shared.Landing)})
}

// Count writes a number of things.
func Count(n int, thing string) string {
	if n != 1 {
		thing += "s"
	}
	return core.Number(n) + " " + thing
}
