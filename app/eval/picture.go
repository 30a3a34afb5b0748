package eval

import (
	"fmt"

	"bobbin/app/eval/chart"
)

// headroom is how far above the usable window the picture goes.
const headroom = 1.12

// SVG returns a chart of the report: the prompts of each turn under each
// policy, what sending everything would be, and the limits.
func (r Report) SVG() []byte {
	if len(r.Policies) == 0 {
		return chart.Chart{Title: r.Source}.SVG()
	}
	first := r.Policies[0]
	c := chart.Chart{
		Title:    fmt.Sprintf("%s: prompt size, turn by turn", r.Source),
		Subtitle: fmt.Sprintf("%s in %s, %s, in the window of %s (%s)", many(r.Messages, "message"), many(r.Turns, "turn"), many(r.Tokens, "token"), r.Model, number(r.Window)),
		XLabel:   "turn", YLabel: "tokens of a prompt", Marks: "summaries",
	}
	all := chart.Line{Name: "sending everything", Faint: true}
	for _, t := range longest(r.Policies).Turns {
		for i, p := range t.Prompts {
			all.Points = append(all.Points, t.point(i, p.Everything))
		}
	}
	c.Lines = append(c.Lines, all)
	high := first.Budget.Usable
	for _, p := range r.Policies {
		c.Lines = append(c.Lines, p.line())
		high = max(high, p.Largest, p.Budget.Usable)
	}
	c.Rules = r.rules()
	if all.Points != nil && r.Everything.Largest < high/2 { // a short conversation in a large window
		c.Top, c.Rules = 0, nil
		return c.SVG()
	}
	c.Top = headroom * float64(high)
	return c.SVG()
}

// line returns the line of a policy, marked where a summary came into use.
func (r Result) line() chart.Line {
	l := chart.Line{Name: r.Policy, Marked: r.Summaries}
	fresh := false // a summary that no prompt has yet
	for _, t := range r.Turns {
		broken, least := -1, 1.0
		for i, p := range t.Prompts {
			l.Points = append(l.Points, t.point(i, p.Tokens))
			if kept := share(p.CachedTokens, p.Tokens); kept < least {
				broken, least = i, kept
			}
		}
		in, after := t.Summarized()
		if len(t.Prompts) == 0 {
			fresh = fresh || after
			continue
		}
		if fresh {
			l.Marks = append(l.Marks, t.point(0, t.Prompts[0].Tokens))
		}
		if in && broken >= 0 && (broken > 0 || !fresh) { // a new summary is where the prompt begins anew
			l.Marks = append(l.Marks, t.point(broken, t.Prompts[broken].Tokens))
		}
		fresh = after
	}
	return l
}

// point returns where a prompt of the turn stands: a turn ends at its number, and its
// prompts are evenly before that.
func (t Turned) point(i, size int) chart.Point {
	return chart.Point{X: float64(t.Turn-1) + float64(i+1)/float64(len(t.Prompts)), Y: float64(size)}
}

// rules returns the limits that hold for all policies that have them.
func (r Report) rules() []chart.Rule {
	usable := r.Policies[0].Budget.Usable
	rules := []chart.Rule{{Name: "usable " + number(usable), Y: float64(usable)}}
	var shared *Budget
	for _, p := range r.Policies {
		switch b := p.Budget; {
		case b.Trigger == 0:
		case shared == nil:
			shared = &b
		case *shared != b:
			return rules
		}
	}
	if shared == nil {
		return rules
	}
	if shared.Trigger == usable {
		rules[0].Name = "usable = trigger " + number(usable)
	} else {
		rules = append(rules, chart.Rule{Name: "trigger " + number(shared.Trigger), Y: float64(shared.Trigger)})
	}
	return append(rules, chart.Rule{Name: "landing " + number(shared.Landing), Y: float64(shared.Landing)})
}
