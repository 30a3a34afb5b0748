package demo

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	askFirst = regexp.MustCompile(`(?i)\b(?:my|the) (?:very )?first (?:message|question|thing)\b|\bwhat did i (?:say|ask|write)(?: you)? first\b|\bhow did (?:we|i|this conversation) (?:begin|start)\b`)
	askRecap = regexp.MustCompile(`(?i)\bsummari[sz]e\b|\bsum up\b|\brecap\b|\bwhat (?:have|did) we (?:talk(?:ed)?|discuss(?:ed)?|do|done|cover(?:ed)?)(?: about)?(?: so far| today| until now)?\s*\?*$|\bwhat do you (?:know|remember)(?: about me)?\s*\??$|\bfass\b.*\bzusammen\b`)
	askAbout = regexp.MustCompile(`(?i)\b(?:(?:what|when|where) did (?:i|we) (?:say|tell you|write|mention|talk|decide|discuss)(?: about| of| on| regarding)?|what do you (?:know|remember) (?:about|of)|what about|do you remember|did i (?:mention|say|tell you)(?: anything)?(?: about| of)?|have i (?:mentioned|told you)(?: about)?|what was (?:that|it) (?:about|with))\s+(.{1,200}?)\s*[?.!]*$`)
)

// firstMessage answers what the conversation began with.
func firstMessage(t talk) (reply, bool) {
	if !askFirst.MatchString(t.last) {
		return pass()
	}
	oldest := ""
	if len(t.earlier) > 0 {
		oldest = t.earlier[0]
	}
	switch {
	case len(t.summary) > 0 && oldest != "":
		return say("The beginning of our conversation is only in its summary, which starts with " + quote(t.summary[0]) +
			". The oldest of your messages that I still have word for word is " + quote(oldest) + ".")
	case len(t.summary) > 0:
		return say("The beginning of our conversation is only in its summary, which starts with " + quote(t.summary[0]) + ".")
	case oldest != "":
		return say("Your first message was " + quote(oldest) + ".")
	default:
		return say("This is your first message.")
	}
}

// recapLines is how many lines a recap has of each kind.
const recapLines = 6

// recap summarizes the conversation for the user.
func recap(t talk) (reply, bool) {
	if !askRecap.MatchString(t.last) {
		return pass()
	}
	if len(t.earlier) == 0 && len(t.summary) == 0 {
		return say("There is nothing to summarize yet: this is where our conversation begins.")
	}
	var b strings.Builder
	if n := len(t.summary); n > 0 {
		b.WriteString("From the summary of what came before:\n")
		for _, line := range t.summary[:min(n, recapLines)] {
			b.WriteString("- " + brief(line, 160) + "\n")
		}
		if n > recapLines {
			fmt.Fprintf(&b, "- … and %d lines more\n", n-recapLines)
		}
	}
	if n := len(t.earlier); n > 0 {
		fmt.Fprintf(&b, "Of your messages I have %d word for word", n)
		shown := telling(t.earlier)
		shown = shown[max(len(shown)-recapLines, 0):]
		if len(shown) < n {
			b.WriteString(", among them")
		}
		b.WriteString(":\n")
		for _, text := range shown {
			b.WriteString("- " + brief(text, 160) + "\n")
		}
	}
	return say(strings.TrimSpace(b.String()))
}

// telling returns the texts that are not questions, or all if all are.
func telling(texts []string) []string {
	var out []string
	for _, text := range texts {
		if !isQuestion(text) {
			out = append(out, text)
		}
	}
	if len(out) == 0 {
		return texts
	}
	return out
}

// saidAbout answers what was said about something.
func saidAbout(t talk) (reply, bool) {
	m := askAbout.FindStringSubmatch(t.last)
	if m == nil || nameAsk.MatchString(t.last) || mineAsk.MatchString(t.last) {
		return pass()
	}
	found := t.about(keywords(m[1]), 3)
	if len(found) == 0 {
		return say("I find nothing about " + quote(m[1]) + ", neither in the messages that I have nor in the summary.")
	}
	return say("About " + quote(m[1]) + " you said: " + cite(found))
}

// ownName answers what the user is called.
func ownName(t talk) (reply, bool) {
	if !nameAsk.MatchString(t.last) {
		return pass()
	}
	if name := knownName(t); name != "" {
		return say("Your name is " + name + ".")
	}
	return say("You have not told me your name, as far as I can see.")
}

// ownThing answers what the user said of something of theirs: "what is my
// favorite color?"
func ownThing(t talk) (reply, bool) {
	m := mineAsk.FindStringSubmatch(t.last)
	if m == nil {
		return pass()
	}
	if value := mine(t, m[1]); value != "" {
		return say("You said that your " + m[1] + " is " + brief(value, 200) + ".")
	}
	if found := t.about(keywords(m[1]), 1); len(found) > 0 {
		return say("I found this: " + cite(found))
	}
	return say("You have not told me about your " + m[1] + ", as far as I can see.")
}

// ownDoings answers questions such as "where do I live?" with what the user said.
func ownDoings(t talk) (reply, bool) {
	if !selfAsk.MatchString(t.last) {
		return pass()
	}
	if found := t.about(keywords(t.last), 2); len(found) > 0 {
		return say("You said: " + cite(found))
	}
	return pass()
}
