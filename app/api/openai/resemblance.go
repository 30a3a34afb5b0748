package openai

import (
	"strings"

	"bobbin/app/core"
)

// minResemblance is the share of common words from which a first message is an edit of the
// stored one, unless it quotes that one.
const minResemblance = 0.5

// minAroundQuote is how many words a request for a title or tags has at least besides the
// message that it quotes. The shortest prompt is that of LibreChat.
const minAroundQuote = 20

// minQuotedAnswer is how many words an answer must have to be recognized as quoted: shorter ones
// are part of other texts.
const minQuotedAnswer = 5

// maxResemblances bounds how many of the stored first messages are compared, the newest.
const maxResemblances = 20

// resembles reports whether the client's conversation has something in common with the log
// although its first turn differs: an answer, or a first message that was edited.
func (t logTree) resembles(c conversation) bool {
	stored, path := map[string]bool{}, pathTurns(t.path)
	for _, p := range path {
		stored[p.answer] = p.answer != ""
	}
	for _, h := range c.history {
		if stored[h.answer] {
			return true
		}
	}
	roots := t.children[""]
	roots = roots[max(0, len(roots)-maxResemblances):]
	first := normalize(c.next.Content.text)
	if len(c.history) > 0 {
		first = c.history[0].user
	} else if quotesConversation(first, roots, path[0].answer) {
		return false
	}
	for _, m := range roots {
		if m.role == core.RoleUser && commonShare(m.content, first) >= minResemblance {
			return true
		}
	}
	return false
}

// quotesConversation reports whether the text quotes one of the first messages, or the first answer,
// as a request for a title or tags does. Words on one side of a message alone are an edit.
func quotesConversation(text string, roots []*logMessage, answer string) bool {
	if len(strings.Fields(answer)) >= minQuotedAnswer && strings.Contains(text, answer) {
		return true
	}
	for _, m := range roots {
		message := normalize(m.content)
		before, after, found := strings.Cut(text, message)
		if m.role != core.RoleUser || message == "" || !found || before == "" || after == "" {
			continue
		}
		if len(strings.Fields(before))+len(strings.Fields(after)) >= minAroundQuote {
			return true
		}
	}
	return false
}

// The beginnings of LibreChat's requests for a title. It sends them beside the first message of a
// chat, unless titleTiming is final.
const (
	titlePromptCompletion = "Provide a concise, 5-word-or-less title for the conversation,"
	titlePromptStructured = "Analyze this conversation and provide:\n1. The detected language of the conversation"
)

// isTaskPrompt reports whether the conversation is a request of Open WebUI or LibreChat for a title,
// tags or search queries, which may come before the first message of the chat.
func (c conversation) isTaskPrompt() bool {
	text := strings.TrimSpace(c.next.Content.text)
	switch {
	case len(c.history) > 0:
		return false
	case strings.HasPrefix(text, "### Task:"):
		return strings.Contains(text, "<chat_history>")
	case strings.HasPrefix(text, titlePromptCompletion), strings.HasPrefix(text, titlePromptStructured):
		return strings.Contains(text, "\nUser: ")
	default:
		return false
	}
}

// commonShare returns the share of the words of both texts that both have.
func commonShare(a, b string) float64 {
	words, common := map[string]int{}, 0
	for _, w := range strings.Fields(a) {
		words[w] |= 1
	}
	for _, w := range strings.Fields(b) {
		words[w] |= 2
	}
	for _, in := range words {
		if in == 3 {
			common++
		}
	}
	return float64(common) / float64(max(len(words), 1))
}
