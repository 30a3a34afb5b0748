package summarize

import (
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
)

// NewExtractive returns the strategy for conversations: the latest request, the most
// informative lines of user and assistant, and the ledger with the user's standing wishes.
func NewExtractive(count core.TextCounter) *Extract {
	return &Extract{count: count, name: StrategyExtractive, read: readConversation, sections: func() []section {
		return []section{
			{heading: requestHeading, share: 3},
			{heading: "## Earlier Summary", share: 10, kind: runningText},
			{heading: userHeading, share: 5, kind: tellingLines},
			{heading: assistantHeading, share: 4, kind: tellingLines},
			{heading: mentionsHeading, share: 20, kind: unsaidLines},
		}
	}}
}

// The headings of an extractive summary. Stored summaries are parsed by them.
const (
	requestHeading   = "## Latest Request"
	userHeading      = "## User Messages"
	assistantHeading = "## Assistant Messages"
	mentionsHeading  = "## Also Mentioned"
)

// Limits for one message.
const (
	readBytes        = 2_000 // from its beginning
	mentionBytes     = 160   // of the words that it mentions
	mentionTerms     = 3     // fewer words mean nothing without their sentence
	minSentenceValue = 2     // of a sentence (valueOf)
	minTermValue     = 0.2   // of a word
)

// readConversation adds the text of the messages.
func readConversation(n *notes, messages []core.Message) {
	request, user, assistant, mentions := n.sectionOf(requestHeading), n.sectionOf(userHeading), n.sectionOf(assistantHeading), n.sectionOf(mentionsHeading)
	user.lines, request.lines = append(user.lines, request.lines...), nil // the previous request
	common := commonTerms(messages)
	for _, m := range messages {
		said := user
		switch m.Role {
		case core.RoleUser:
		case core.RoleAssistant:
			said = assistant
		default:
			continue
		}
		text := common.tellingSentences(spokenText(m), m.Role == core.RoleAssistant)
		if speaker := prompttext.SpeakerName(m); text != "" && speaker != "" {
			text = speaker + ": " + text
		}
		if text != "" {
			said.addLine(`"`+text+`"`, messageRef(m))
		}
		mentions.addLine(common.tellingWords(text), messageRef(m))
	}
	if i := len(user.lines) - 1; i >= 0 {
		request.lines, user.lines = user.lines[i:], user.lines[:i]
	}
	if earlier := n.earlierSection(); earlier.text == "" && len(request.lines) == 0 && len(assistant.lines) == 0 {
		earlier.text = describeRange(messages)
	}
}

// commonTerms counts the words of the messages.
func commonTerms(messages []core.Message) *frequencies {
	f := &frequencies{}
	for _, m := range messages {
		if m.Role == core.RoleUser || m.Role == core.RoleAssistant {
			f.addTerms(termsOf(core.Clip(spokenText(m), readBytes)))
		}
	}
	return f
}

// tellingSentences returns the first informative sentences of a text; of an answer no
// questions. If there are none, it returns the beginning of a question's text.
func (f *frequencies) tellingSentences(text string, answer bool) string {
	var kept []string
	size := 0
	for line := range strings.Lines(core.Clip(text, readBytes)) {
		for _, sentence := range prompttext.Sentences(line) {
			sentence = strings.TrimSpace(sentence)
			if f.textValue(sentence) < minSentenceValue || answer && strings.HasSuffix(sentence, "?") {
				continue
			}
			if size += len(sentence) + 1; size > quoteBytes && len(kept) > 0 {
				return strings.Join(kept, " ")
			}
			kept = append(kept, sentence)
		}
	}
	if len(kept) == 0 && !answer {
		return prompttext.Line(text, quoteBytes)
	}
	return prompttext.Line(strings.Join(kept, " "), quoteBytes)
}

// tellingWords returns the informative words of a text, in their order; empty = too few.
func (f *frequencies) tellingWords(text string) string {
	var kept []string
	size := 0
	for word := range strings.FieldsSeq(text) {
		if f.textValue("a "+word) < minTermValue { // not as the beginning of a sentence
			continue
		}
		word = strings.Trim(word, ".,!?;:\"()[]…“”")
		kept = append(kept, word)
		if size += len(word) + 1; size > mentionBytes {
			break
		}
	}
	if len(kept) < mentionTerms {
		return ""
	}
	return strings.Join(kept, " ")
}
