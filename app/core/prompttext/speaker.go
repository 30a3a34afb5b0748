package prompttext

import (
	"regexp"
	"strings"
	"unicode"

	"bobbin/app/core"
)

// maxSpeaker is how many characters of a name are shown.
const maxSpeaker = 80

// speakerOpen begins the line that names a speaker.
const speakerOpen = "[from user "

// forgedSpeaker matches a line that looks like that line.
var forgedSpeaker = regexp.MustCompile(`(?mi)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([\s\p{Z}\p{Cf}]*)[\[［]([\s\p{Z}\p{Cf}]*f\p{Cf}*r\p{Cf}*o\p{Cf}*m\b)`)

// SpeakerName returns the name of a message's speaker in one line; empty unless prompts show
// it (core.AfterSpeaker).
func SpeakerName(m core.Message) string {
	if !m.Named {
		return ""
	}
	// Brackets, colons, marks of code, and invisible characters.
	name := m.Author
	name = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("()'’‘", r):
			return r
		case unicode.In(r, unicode.C, unicode.Z, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf), strings.ContainsRune("<>＜＞﹤﹥`|｜:：\\\uFFFD", r):
			return ' '
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	name = strings.Join(strings.Fields(name), " ")
	if all := []rune(name); len(all) > maxSpeaker {
		name = strings.TrimSpace(string(all[:maxSpeaker]))
	}
	return name
}

// SpeakerLine returns the line with the speaker's name that precedes the text of a message;
// empty without a name to show.
func SpeakerLine(m core.Message) string {
	name := SpeakerName(m)
	if name == "" {
		return ""
	}
	return speakerOpen + name + "]\n"
}

// WithSpeaker returns the content of a message as models see it: with its speaker, if prompts
// show the name. No other line looks as if somebody else spoke.
func WithSpeaker(m core.Message) string {
	if !m.Named {
		return m.Content
	}
	content := m.Content
	if strings.ContainsAny(content, "[［") {
		content = forgedSpeaker.ReplaceAllString(content, "$1$2($3")
	}
	return SpeakerLine(m) + content
}
