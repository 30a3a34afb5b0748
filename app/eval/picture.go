package eval

import (
	"fmt"
	"strings"
)

// headroom is how far above the usable window the picture goes.
const headroom = 1.12

// SVG returns a chart of the report: the prompts of each turn under each
// policy, what sending everything would be, and the limits.
func (r Report) SVG() []byte {
	if len(r.Policies) == 0 {
		return Chart{Title: r.Source}.SVG()
	}
	first := r.Policies[0]
	c := Chart{
		Title:    fmt.Sprintf("%s: prompt size, turn by turn", r.Source),
		Subtitle: fmt.Sprintf("%s in %s, %s, in the window of %s (%s)", formatCount(r.Messages, "message"), formatCount(r.Turns, "turn"), formatCount(r.Tokens, "token"), r.Model, formatNumber(r.Window)),
		XLabel:   "turn", YLabel: "tokens of a prompt", Marks: "summaries", Caption: r.chartCaption(),
	}
	all := Line{Name: "sending everything", Faint: true}
	for _, t := range longestResult(r.Policies).Turns {
		for i, p := range t.Prompts {
			all.Points = append(all.Points, t.chartPoint(i, p.Everything))
		}
	}
	c.Lines = append(c.Lines, all)
	high := first.Budget.Usable
	for _, p := range r.Policies {
		c.Lines = append(c.Lines, p.chartLine())
		high = max(high, p.Largest, p.Budget.Usable)
	}
	c.Rules = r.chartRules()
	if all.Points != nil && r.Everything.Largest < high/2 { // a short conversation in a large window
		c.Top, c.Rules = 0, nil
		return c.SVG()
	}
	c.Top = headroom * float64(high)
	return c.SVG()
}

// chartCaption says how many of the facts are reachable at the end.
func (r Report) chartCaption() string {
	if r.Policies[0].Facts.Planted == 0 {
		return ""
	}
	parts := make([]string, len(r.Policies))
	for i, p := range r.Policies {
		parts[i] = fmt.Sprintf("%s %d", p.Policy, p.Facts.Reachable)
	}
	return fmt.Sprintf("%s reachable at the end, of %d: %s", r.factNoun(), r.Policies[0].Facts.Planted, strings.Join(parts, ", "))
}

// chartLine returns the line of a policy, marked where a summary came into use.
func (r Result) chartLine() Line {
	l := Line{Name: r.Policy, Marked: r.Summaries}
	fresh := false // a summary that no prompt has yet
	for i, t := range r.Turns {
		if i > 0 && t.Conversation != r.Turns[i-1].Conversation {
			fresh = false
		}
		broken, least := -1, 1.0
		for i, p := range t.Prompts {
			l.Points = append(l.Points, t.chartPoint(i, p.Tokens))
			if kept := ratioOf(p.CachedTokens, p.Tokens); kept < least {
				broken, least = i, kept
			}
		}
		in, after := t.Summarized()
		if len(t.Prompts) == 0 {
			fresh = fresh || after
			continue
		}
		if fresh {
			l.Marks = append(l.Marks, t.chartPoint(0, t.Prompts[0].Tokens))
		}
		if in && broken >= 0 && (broken > 0 || !fresh) { // a new summary is where the prompt begins anew
			l.Marks = append(l.Marks, t.chartPoint(broken, t.Prompts[broken].Tokens))
		}
		fresh = after
	}
	return l
}

// chartPoint returns where a prompt of the turn stands: a turn ends at its number, and its
// prompts are evenly before that.
func (t Turned) chartPoint(i, size int) Point {
	return Point{X: float64(t.Turn-1) + float64(i+1)/float64(len(t.Prompts)), Y: float64(size)}
}

// chartRules returns the limits that hold for all policies that have them.
func (r Report) chartRules() []Rule {
	usable := r.Policies[0].Budget.Usable
	rules := []Rule{{Name: "usable " + formatNumber(usable), Y: float64(usable)}}
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
		rules[0].Name = "usable = trigger " + formatNumber(usable)
	} else {
		rules = append(rules, Rule{Name: "trigger " + formatNumber(shared.Trigger), Y: float64(shared.Trigger)})
	}
	return append(rules, Rule{Name: "landing " + formatNumber(shared.Landing), Y: float64(shared.Landing)})
}
