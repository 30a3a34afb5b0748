package demo

import (
	"regexp"
	"strconv"
	"strings"

	"bobbin/app/core/llm"
)

// As a summarizer the demonstration copies sentences: the sections are those that
// the summarizer's prompts ask for, the words are the conversation's own. What an
// earlier summary says is carried forward. When it gets too long, what matters
// least goes first, of this the oldest.

// summarizerMark stands in the system text of every summarizer's request.
const summarizerMark = "You summarize conversations"

func isSummarizer(req llm.Request) bool {
	for _, block := range req.System {
		if strings.Contains(block, summarizerMark) {
			return true
		}
	}
	return false
}

var askedSize = regexp.MustCompile(`(?i)at most (\d{1,9}) tokens`)

// summarize writes the summary that the request asks for.
func (m *Model) summarize(req llm.Request) string {
	text := ""
	for _, msg := range req.Messages {
		text += msg.Content + "\n"
	}
	transcript := parseTranscript(between(text, "transcript"))
	n := notes{count: m.count}
	n.addSummary(between(text, "summary"))
	n.addGoal(transcript)
	for i, t := range transcript {
		n.addTurn(t, i == len(transcript)-1)
	}
	if len(n.lines) == 0 {
		n.add(sectionFacts, "Nothing was said that has to be kept.")
	}
	n.shrink(m.summaryLimit(req, text))
	return n.String()
}

// summaryLimit returns how many tokens the summary may have: less than is asked
// for, as the estimate counts less than a tokenizer does.
func (m *Model) summaryLimit(req llm.Request, text string) int {
	limit := MaxOutput
	if all := askedSize.FindAllStringSubmatch(text, -1); len(all) > 0 {
		if n, err := strconv.Atoi(all[len(all)-1][1]); err == nil {
			limit = min(limit, n)
		}
	}
	if req.MaxOutputTokens > 0 {
		limit = min(limit, req.MaxOutputTokens)
	}
	return limit * 3 / 4
}

// between returns what stands between the lines <tag> and </tag>; "" if they are
// not there.
func between(text, tag string) string {
	_, rest, ok := strings.Cut(text, "<"+tag+">\n")
	if !ok {
		return ""
	}
	inside, _, _ := strings.Cut(rest, "\n</"+tag+">")
	return inside
}

// turn is a message of the transcript.
type turn struct {
	role string // user, assistant, tool
	text string
}

var turnLine = regexp.MustCompile(`^\[[0-9a-f]{1,20}\] (user|assistant|tool)\b([^:]{0,90}): ?(.*)$`)

// callLine is a tool call in the transcript.
var callLine = regexp.MustCompile(`^\[[0-9a-f]{1,20}\] assistant calls `)

// parseTranscript reads lines such as "[12] user: text"; lines that do not begin
// a message go on with the last. Tool calls are passed over: their results follow.
func parseTranscript(text string) []turn {
	var out []turn
	skip := false
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if callLine.MatchString(line) {
			skip = true
			continue
		}
		if m := turnLine.FindStringSubmatch(line); m != nil {
			skip = false
			content := m[3]
			if m[1] == "tool" {
				content = strings.TrimSpace(m[2]) + ": " + content
			}
			out = append(out, turn{m[1], content})
			continue
		}
		if len(out) > 0 && !skip {
			out[len(out)-1].text += "\n" + line
		}
	}
	return out
}
