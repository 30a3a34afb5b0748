package demo

import (
	"hash/fnv"
	"regexp"
	"strings"
)

// introduction is said first, so that nobody takes the demonstration for more.
const introduction = "I am Bobbin's demonstration model: there is no language model behind me, only a few rules, so that you can try " +
	"conversations, tools and context management without a key. For a real one set OPENAI_API_KEY or GEMINI_API_KEY, or run Ollama, and start Bobbin again."

// rule answers if it knows how to.
type rule func(t talk) (reply, bool)

// rules are asked in this order; the last always answers.
func rules() []rule {
	return []rule{
		fromResults,
		firstMessage,
		recap,
		saidAbout,
		ownName,
		ownThing,
		callTools,
		ownDoings,
		whatAreYou,
		newFact,
		courtesy,
		question,
		reflect,
	}
}

// converse answers the last message.
func converse(t talk) reply {
	var r reply
	for _, rule := range rules() {
		if answer, ok := rule(t); ok {
			r = answer
			break
		}
	}
	if t.begins() && len(r.calls) == 0 {
		r.text = introduction + "\n\n" + r.text
	}
	return r
}

func say(text string) (reply, bool) { return reply{text: text}, true }

func pass() (reply, bool) { return reply{}, false }

var askWhat = regexp.MustCompile(`(?i)\b(?:who|what) are you\b|\bwhat can you do\b|\bare you (?:a|an) (?:ai|bot|robot|human|model)\b|\bhow do you work\b|^\s*/?help\s*[.!?]?\s*$`)

// whatAreYou answers questions about itself.
func whatAreYou(t talk) (reply, bool) {
	if !askWhat.MatchString(t.last) {
		return pass()
	}
	text := "I can tell you what you said before, summarize our conversation, and call tools: try “my name is …”, later “what is my name?”, " +
		"“what is 17 * 23?”, “what time is it?”, “summarize our conversation”."
	if !t.begins() { // else the introduction has just said it
		text = "I am a demonstration without a language model. " + text
	}
	return say(text)
}

// newFact acknowledges what the user tells about themselves.
func newFact(t talk) (reply, bool) {
	var facts []string
	for _, s := range sentences(t.last) {
		if tellsFact(s) {
			facts = append(facts, s)
		}
	}
	if len(facts) == 0 {
		return pass()
	}
	if m := nameSaid.FindStringSubmatch(t.last); m != nil {
		return say("Nice to meet you, " + m[1] + ". I will remember your name as long as it is in the conversation or its summary.")
	}
	return say("Noted: " + quote(strings.Join(facts, " ")) + " Ask me about it later.")
}

var (
	greets  = regexp.MustCompile(`(?i)^\W*(?:hi|hello|hey|good (?:morning|afternoon|evening|day)|greetings|hallo|servus|guten (?:morgen|tag|abend))\b`)
	thanks  = regexp.MustCompile(`(?i)\b(?:thanks|thank you|thx|danke)\b`)
	goodbye = regexp.MustCompile(`(?i)^\W*(?:bye|goodbye|good night|see you|tschüss)\b`)
)

// courtesy answers greetings, thanks and goodbyes.
func courtesy(t talk) (reply, bool) {
	name := knownName(t)
	if name != "" {
		name = ", " + name
	}
	switch {
	case goodbye.MatchString(t.last):
		return say("Goodbye" + name + "! Our conversation stays where it is; you can come back to it.")
	case greets.MatchString(t.last) && len(keywords(t.last)) <= 2:
		return say("Hello" + name + "! Tell me something, and ask me about it later.")
	case thanks.MatchString(t.last) && len(keywords(t.last)) <= 2:
		return say("You are welcome" + name + ".")
	}
	return pass()
}

// question answers what no rule knows, as honestly as it can.
func question(t talk) (reply, bool) {
	parts := sentences(t.last)
	if len(parts) == 0 || !isQuestion(parts[len(parts)-1]) {
		return pass()
	}
	text := "That I cannot answer: I have no knowledge of my own, only what is said here."
	if found := t.about(keywords(t.last), 1); len(found) > 0 {
		text += " What I found on it: " + cite(found)
	}
	return say(text)
}

// reflect always has an answer: it takes up a word, and what was said with it
// earlier.
func reflect(t talk) (reply, bool) {
	word := longest(t.last)
	if word == "" {
		return say("I have read that. Tell me a little more, or ask me what you said before.")
	}
	if found := t.about(keywords(word), 1); len(found) > 0 {
		return say("You come back to “" + word + "”. Earlier: " + cite(found) + " What has changed since?")
	}
	openings := []string{
		"So it is about “" + word + "”. What matters most to you there?",
		"“" + word + "”: I keep that. You can ask me later what you said about it.",
		"I see, “" + word + "”. What should come next?",
	}
	h := fnv.New32a()
	h.Write([]byte(t.last))
	return say(openings[h.Sum32()%uint32(len(openings))])
}

// cite quotes remarks and says where they are from.
func cite(remarks []remark) string {
	out := make([]string, 0, len(remarks))
	for _, r := range remarks {
		text := quote(r.text)
		if r.summary {
			text += " (from the summary)"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ") + "."
}
