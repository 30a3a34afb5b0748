package demo

import (
	"strings"

	"bobbin/app/core/llm"
)

// titlerMark begins the system text of a request for a title.
const titlerMark = "You write titles of conversations"

func isTitler(req llm.Request) bool {
	return len(req.System) > 0 && strings.HasPrefix(req.System[0], titlerMark)
}

// titleWords is how many words a title has.
const titleWords = 6

// title is the first words of the question.
func title(req llm.Request) string {
	text := ""
	for _, msg := range req.Messages {
		text += msg.Content + "\n"
	}
	list := strings.Fields(between(text, "question"))
	return strings.TrimRight(strings.Join(list[:min(len(list), titleWords)], " "), ".,;:!?")
}
