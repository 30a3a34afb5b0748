package demo

import (
	"regexp"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// talk is the conversation as the rules see it.
type talk struct {
	req     llm.Request
	summary []string // the lines of the summary, without headings and marks
	earlier []string // what the user said before, oldest first
	last    string   // what the user said last
	answers int      // how many answers are in the prompt
}

// described matches the line that stands for an image, whose size is no task for the
// calculator.
var described = regexp.MustCompile(`(?m)^\[(?:image|file) "[^\n]*\]$`)

// notesTitle begins notes on the tool loop of a run: the user did not say them.
const notesTitle = "Notes on the work so far, in place of messages "

// newTalk reads the request.
func newTalk(req llm.Request) talk {
	t := talk{req: req, summary: summaryLines(req.System)}
	for _, m := range req.Messages {
		switch m.Role {
		case core.RoleUser:
			if strings.HasPrefix(m.Content, notesTitle) {
				continue
			}
			if t.last != "" {
				t.earlier = append(t.earlier, t.last)
			}
			t.last = strings.TrimSpace(described.ReplaceAllString(m.Content, ""))
		case core.RoleAssistant:
			if m.Content != "" {
				t.answers++
			}
		}
	}
	return t
}

// begins reports whether the answer is the first of the conversation.
func (t talk) begins() bool { return t.answers == 0 && len(t.summary) == 0 }

// offers reports whether the tool may be called.
func (t talk) offers(tool string) bool {
	if t.req.ToolChoice == llm.ToolChoiceNone {
		return false
	}
	for _, spec := range t.req.Tools {
		if spec.Name == tool {
			return true
		}
	}
	return false
}

// The summary in the system blocks (W7).
const (
	summaryTitle = "Summary of earlier conversation:"
	summaryEnd   = "</conversation_summary>"
)

// summaryLines finds the summary in the system blocks and returns its lines,
// without headings, list marks and fences.
func summaryLines(system []string) []string {
	var out []string
	for _, block := range system {
		_, summary, ok := strings.Cut(block, summaryTitle)
		if !ok {
			continue
		}
		summary, _, _ = strings.Cut(summary, summaryEnd)
		for line := range strings.Lines(summary) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' || line[0] == '<' || strings.HasPrefix(line, "```") {
				continue
			}
			out = append(out, strings.TrimSpace(strings.TrimLeft(line, "-*• ")))
		}
	}
	return out
}

// remark is something that was said earlier.
type remark struct {
	text    string
	summary bool // it is known from the summary only
}

// statements returns the sentences that the user said earlier, and those of the
// summary before them, without questions.
func (t talk) statements() []remark {
	var out []remark
	add := func(text string, summary bool) {
		for _, s := range sentences(text) {
			if !isQuestion(s) {
				out = append(out, remark{s, summary})
			}
		}
	}
	for _, line := range t.summary {
		add(line, true)
	}
	for _, text := range t.earlier {
		add(text, false)
	}
	return out
}

// about returns what was said about the keywords, at most n remarks: those with
// the most of the keywords, of these the newest; in the order in which they were
// said.
func (t talk) about(wanted []string, n int) []remark {
	if len(wanted) == 0 {
		return nil
	}
	all := t.statements()
	most := 0
	for _, r := range all {
		most = max(most, matches(r.text, wanted))
	}
	if most*2 < len(wanted) || most == 0 {
		return nil
	}
	var out []remark
	for i := len(all) - 1; i >= 0 && len(out) < n; i-- {
		if matches(all[i].text, wanted) == most && !contains(out, all[i].text) {
			out = append([]remark{all[i]}, out...)
		}
	}
	return out
}

func contains(remarks []remark, text string) bool {
	for _, r := range remarks {
		if r.text == text {
			return true
		}
	}
	return false
}
