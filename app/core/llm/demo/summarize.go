package demo

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	askedSize = regexp.MustCompile(`at most (\d{1,9}) tokens`)
	turnLine  = regexp.MustCompile(`^\[[0-9a-f]{1,20}\] (user|assistant|tool)[^:]{0,90}: ?`)
	// What makes a sentence worth its room.
	outcome  = regexp.MustCompile(`(?i)\b(?:errors?|failed|decided|fixed|solved|done)\b`)
	personal = regexp.MustCompile(`(?i)\b(?:my|our|i|we)\b`)
	specific = regexp.MustCompile(`\d|\S \p{Lu}|[a-z][/._][a-z]`)
)

const (
	mostValue = 3
	newLines  = 2 // of a transcript that count as the most informative ones: a summary that is extended says something new
)

// summarize extends the summary in the request by sentences of the transcript. When it gets
// too long it drops the least informative lines first, of these the oldest.
func (m *Model) summarize(request string) string {
	limit, size := maxOutput, 0
	if asked := askedSize.FindAllStringSubmatch(request, -1); asked != nil {
		limit, _ = strconv.Atoi(asked[len(asked)-1][1]) // at most nine digits
	}
	summary, transcript := textBetween(request, "summary"), transcriptSentences(textBetween(request, "transcript"))
	news := mostNew(transcript, summary)
	var lines []string
	for _, line := range append(sentencesOf(summary), transcript...) {
		if !slices.Contains(lines, line) {
			lines, size = append(lines, line), size+m.count.Text(line)+2
		}
	}
	for value := range mostValue + 1 {
		lines = slices.DeleteFunc(lines, func(line string) bool {
			if size <= limit*3/4 || valueOf(line) > value || value < mostValue && slices.Contains(news, line) {
				return false
			}
			size -= m.count.Text(line) + 2
			return true
		})
	}
	return "## Facts\n- " + strings.Join(lines, "\n- ")
}

// transcriptSentences returns what the user says and does not ask, what the assistant says
// of outcomes, and the first line of each tool result.
func transcriptSentences(transcript string) (out []string) {
	role := ""
	for line := range strings.Lines(transcript) {
		m := turnLine.FindStringSubmatch(line)
		if m != nil {
			role, line = m[1], line[len(m[0]):]
		}
		for _, s := range sentencesOf(line) {
			if role == "tool" && m != nil || role == "user" && !strings.HasSuffix(s, "?") || role == "assistant" && outcome.MatchString(s) {
				out = append(out, s)
			}
		}
	}
	return out
}

// mostNew returns the lines with the most words that are not in the summary, newLines of
// them; none, if there is no summary.
func mostNew(lines []string, summary string) []string {
	if summary == "" {
		return nil
	}
	known := map[string]bool{}
	for word := range strings.FieldsSeq(summary) {
		known[word] = true
	}
	words := map[string]int{}
	for _, line := range lines {
		words[line] = 0
		for word := range strings.FieldsSeq(line) {
			if !known[word] {
				words[line]++
			}
		}
	}
	lines = slices.Clone(lines)
	slices.SortStableFunc(lines, func(a, b string) int { return words[b] - words[a] })
	return lines[:min(newLines, len(lines))]
}

// valueOf returns how informative a line is, from 0 to mostValue.
func valueOf(line string) int {
	value := 0
	if personal.MatchString(line) || outcome.MatchString(line) {
		value = 2
	}
	if specific.MatchString(line) {
		value++
	}
	return value
}

// textBetween returns the text between the lines <tag> and </tag>; "" if it has none.
func textBetween(text, tag string) string {
	_, rest, _ := strings.Cut(text, "<"+tag+">\n")
	inside, _, _ := strings.Cut(rest, "\n</"+tag+">")
	return inside
}
