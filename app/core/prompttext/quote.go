package prompttext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// The names that quoted text must not have between angle brackets: our own fences, the
// roles of messages, and the marks of chat templates (ChatML, Llama, Mistral, Gemma) and
// of tool calls in text.
const (
	tags = " transcript summary conversation_summary pinned recalled_passages standing_instructions work_notes instructions system_prompt start_of_turn end_of_turn im_start im_end" +
		" tool_call tool_calls tool_response tool_result function_call function_calls function_results invoke "
	roles  = " system user assistant human developer tool question answer " // List<User> is a type
	tokens = " s sys bos eos "                                              // a<s is a comparison
)

// blocks are the names that chat templates write between square brackets, in capital
// letters.
const blocks = " inst sys system_prompt available_tools tool_calls tool_results tool_content args call_id think "

// roleLine matches a line that looks like a message of a chat transcript. YAML and code have
// these words in lower case.
var roleLine = regexp.MustCompile(`(?m)(^|[\r\v\f\x{85}\x{2028}\x{2029}])([ \t#*]*(?:System|SYSTEM|User|USER|Human|HUMAN|Assistant|ASSISTANT|Developer|DEVELOPER|Instruction|Response|Tool|TOOL)[ \t*]*)[:：]`)

// maxName is longer than every listed name, in characters, including those that nameAt
// skips.
const maxName = 48

// Harmless returns the text so that it is safe to quote.
func Harmless(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if strings.ContainsAny(text, angles+"[［") {
		var b strings.Builder
		b.Grow(len(text))
		last := rune(0)
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			next := text[i+size : min(len(text), i+size+utf8.UTFMax*maxName)]
			switch {
			case strings.ContainsRune(angles, r) && isTag(next, last):
				b.WriteByte('[')
			case (r == '[' || r == '［') && isBlockMark(next):
				b.WriteByte('(')
			default:
				b.WriteString(text[i : i+size])
			}
			last = r
			i += size
		}
		text = b.String()
	}
	if strings.ContainsAny(text, ":：") {
		text = roleLine.ReplaceAllString(text, "$1$2 -")
	}
	return text
}

const angles = "<＜﹤〈⟨‹❮⧼"

// isTag reports whether the text after an angle bracket forms a mark; last is the character
// before the bracket.
func isTag(text string, last rune) bool {
	if first, size := utf8.DecodeRuneInString(text); strings.ContainsRune("|｜¦❘", first) && size > 0 {
		r, _ := utf8.DecodeRuneInString(text[size:])
		return unicode.IsLetter(r)
	}
	name, rest := nameAt(text)
	in := func(list string) bool { return name != "" && strings.Contains(list, " "+name+" ") }
	closing := strings.HasPrefix(text, "/")
	return in(tags) || in(roles) && (closing || !unicode.IsLetter(last)) || in(tokens) && strings.HasPrefix(rest, ">")
}

// isBlockMark is isTag after a square bracket.
func isBlockMark(text string) bool {
	name, rest := nameAt(text)
	i := strings.IndexFunc(text, unicode.IsLetter)
	if name == "" || !strings.Contains(blocks, " "+name+" ") {
		return false
	}
	first, _ := utf8.DecodeRuneInString(text[i:])
	rest = strings.TrimSpace(rest)
	return unicode.IsUpper(first) && (strings.HasPrefix(rest, "]") || strings.HasPrefix(rest, "］"))
}

// nameAt returns the name with which the text begins, in lower case and in plain letters,
// and the rest. It skips blanks and slashes before the name, and invisible characters.
func nameAt(text string) (name, rest string) {
	var b strings.Builder
	n := 0
	for i, r := range text {
		if r >= '！' && r <= '～' { // of full width
			r -= '！' - '!'
		}
		r = unicode.ToLower(r)
		switch {
		case r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r):
			b.WriteRune(r)
		case unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Mn, r) || unicode.Is(unicode.Cc, r) && !unicode.IsSpace(r):
		case b.Len() == 0 && (unicode.IsSpace(r) || unicode.Is(unicode.Z, r) || strings.ContainsRune(`/\⁄∕⧸╱⟋⫽|<`, r)):
		default:
			return b.String(), text[i:]
		}
		if n++; n > maxName {
			return "", text
		}
	}
	return b.String(), ""
}

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
