package eval_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core"
)

// quotedMessage is a message as search_history quotes it.
type quotedMessage struct {
	passage int // its place among the passages
	seq     int64
	found   bool // else it stands beside one that was found
	text    string
}

// quotedBeside is how many messages on each side of a result search_history quotes at most.
const quotedBeside = 4

// quoteHeading matches the line above a quoted message.
var quoteHeading = regexp.MustCompile(`^\[(message \S+, )?#(\d+), `)

// readQuotes returns the messages that an answer of search_history quotes.
func readQuotes(answer string) []quotedMessage {
	var quotes []quotedMessage
	passage := 0
	for line := range strings.Lines(answer) {
		heading := quoteHeading.FindStringSubmatch(line)
		switch {
		case heading != nil:
			seq, _ := strconv.ParseInt(heading[2], 10, 64)
			quotes = append(quotes, quotedMessage{passage: passage, seq: seq, found: heading[1] != ""})
		case line == "---\n":
			passage++
		case len(quotes) > 0:
			quotes[len(quotes)-1].text += line
		}
	}
	return quotes
}

// firstQuotes returns what an answer of search_history quotes for the first n of its results:
// these and those beside them. The ranking has all results in order.
func firstQuotes(answer string, ranking []core.SearchHit, n int) string {
	quotes := readQuotes(answer)
	var text strings.Builder
	for _, hit := range ranking {
		at := slices.IndexFunc(quotes, func(q quotedMessage) bool { return q.found && q.seq == hit.Seq })
		if at < 0 || n == 0 {
			continue // the prompt has it already
		}
		n--
		for _, q := range quotes {
			if q.passage == quotes[at].passage && max(q.seq-hit.Seq, hit.Seq-q.seq) <= quotedBeside {
				text.WriteString(plainLine(q.text) + "\n")
			}
		}
	}
	return text.String()
}
