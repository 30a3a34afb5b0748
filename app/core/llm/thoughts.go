package llm

import "strings"

// maxBlanks is how many blanks before a text may hide that it begins with thoughts, in bytes.
const maxBlanks = 1_000

// thoughtTags are the tags between which models write thoughts. Templates that open the thought in the
// prompt leave the answer its end alone.
//
//nolint:gochecknoglobals // a constant table
var thoughtTags = []struct {
	begin, end     string
	openedInPrompt bool
}{
	{"<think>", "</think>", true}, // DeepSeek, Qwen, GLM, MiniMax
	{"◁think▷", "◁/think▷", true}, // Kimi
	{"<thinking>", "</thinking>", false},
	{"<thought>", "</thought>", false},
	{"<analysis>", "</analysis>", false},
	{"<reasoning>", "</reasoning>", false},
	{"<seed:think>", "</seed:think>", false},   // Seed-OSS
	{"[THINK]", "[/THINK]", false},             // Magistral
	{"<|channel>thought", "<channel|>", false}, // Gemma
	// gpt-oss. Its answer is the channel that is called final, with or without a message before it. A call
	// that the server did not recognize is in the channel commentary, which then ends the answer.
	{"<|channel|>analysis<|message|>", "<|end|><|start|>assistant", false},
	{"<|channel|>commentary", "<|start|>assistant", false},
	{"", "<|channel|>final<|message|>", false},
}

// textEnd ends a text of gpt-oss, behind its channels.
const textEnd = "<|return|>"

// blanks may stand before a thought: white space and a byte order mark.
const blanks = " \t\r\n\uFEFF"

// CutThoughts returns a whole answer without the thoughts at its beginning, and these.
func CutThoughts(answer string) (text, thoughts string) {
	var r thoughtReader
	var said, reasoning strings.Builder
	r.read(answer, &said, &reasoning)
	r.end(&said, &reasoning)
	if reasoning.Len() > 0 {
		return said.String(), reasoning.String()
	}
	thoughts, text = splitOpened(said.String())
	return text, thoughts
}

// splitOpened splits a text behind the thought that the prompt has opened. An end tag counts where no
// begin tag is before it, unless the text speaks of it: in code, or behind a blank, a quote or a parenthesis.
func splitOpened(text string) (thought, rest string) {
	for _, tag := range thoughtTags {
		depth, backticks := 0, 0
		for rest, found := text, tag.openedInPrompt; found; {
			var piece string
			if piece, rest, found = strings.Cut(rest, tag.end); !found {
				break
			}
			depth += strings.Count(piece, tag.begin)
			backticks += strings.Count(piece, "`")
			switch {
			case depth > 0:
				depth--
			case backticks%2 == 0 && (piece == "" || !strings.ContainsAny(piece[len(piece)-1:], " \t\"'(")):
				return strings.TrimSuffix(text, tag.end+rest), strings.TrimLeft(rest, " \t\r\n")
			}
		}
	}
	return "", text
}

// thoughtReader tells thoughts from text, piece by piece.
type thoughtReader struct {
	held    string // may be the beginning of a tag
	inText  bool   // no tag counts any more but textEnd
	isOSS   bool   // the text may end with textEnd
	thought bool   // there was one
	depth   int    // tags that are open
	// After an end tag inside a thought that had several begin tags, unclear may be thought, if another
	// end tag follows, or the text, if none does: the thought then only mentioned a tag.
	isUnclear bool
	unclear   strings.Builder
}

// separate returns the delta with the thoughts at the beginning of the stream's text as Reasoning. A
// thought ends with the end tag of any name; one that never ends is the whole text. Tags behind the
// first words of the text are text.
func (r *thoughtReader) separate(d Delta) Delta {
	if r.inText && !r.isOSS {
		return d
	}
	var text, reasoning strings.Builder
	reasoning.WriteString(d.Reasoning)
	r.read(d.Text, &text, &reasoning)
	if d.Finish != "" {
		r.end(&text, &reasoning)
	}
	d.Text, d.Reasoning = text.String(), reasoning.String()
	return d
}

// read adds what the piece is known to be to text and reasoning.
func (r *thoughtReader) read(piece string, text, reasoning *strings.Builder) {
	r.held += piece
	for !r.inText && (r.depth > 0 || r.begin()) {
		before, tag, ends, rest := cutTag(r.held)
		r.held = rest
		sink := reasoning
		if r.isUnclear {
			sink = &r.unclear
		}
		sink.WriteString(before)
		switch {
		case tag == "":
			return
		case !ends:
			r.depth++
			sink.WriteString(tag)
		default:
			r.depth--
			reasoning.WriteString(r.unclear.String())
			r.unclear.Reset()
			r.isUnclear = r.depth > 0
		}
	}
	if r.inText {
		known := len(r.held)
		for n := len(textEnd); n > 0 && r.isOSS; n-- {
			if strings.HasSuffix(r.held, textEnd[:n]) {
				known -= n
				break
			}
		}
		text.WriteString(r.held[:known])
		r.held = r.held[known:]
	}
}

// begin reports whether a thought begins with what is held. Else it may still turn out, or the text
// begins.
func (r *thoughtReader) begin() bool {
	for {
		rest := strings.TrimLeft(r.held, blanks)
		n, ends, partial := tagLength(rest)
		r.isOSS = r.isOSS || n > 0 && strings.HasPrefix(rest, "<|")
		switch {
		case len(r.held)-len(rest) > maxBlanks && !r.thought: // text
		case n > 0 && !ends:
			r.held, r.depth, r.thought = rest[n:], 1, true
			return true
		case n > 0: // one end tag too many, or of a thought that the prompt has opened
			r.held, r.thought = rest[n:], true
			continue
		case partial:
			return false
		case rest == "":
			if r.thought {
				r.held = ""
			}
			return false
		}
		if r.thought { // the blanks stood between it and the text
			r.held = rest
		}
		r.inText = true
		return false
	}
}

// end adds what is still held.
func (r *thoughtReader) end(text, reasoning *strings.Builder) {
	if r.isOSS {
		r.held = strings.TrimSuffix(r.held, textEnd)
	}
	switch {
	case r.isUnclear:
		text.WriteString(strings.TrimLeft(r.unclear.String()+r.held, " \t\r\n"))
	case r.depth > 0:
		reasoning.WriteString(r.held)
	case !r.thought || strings.TrimSpace(r.held) != "":
		text.WriteString(r.held)
	}
	*r = thoughtReader{inText: true}
}

// cutTag returns what is before the first tag of a thought, the tag, whether it is an end tag, and what
// follows it. Without a tag, rest is what may be the beginning of one.
func cutTag(s string) (before, tag string, ends bool, rest string) {
	for i := 0; ; i++ {
		next := strings.IndexAny(s[i:], "<[◁")
		if next < 0 {
			return s, "", false, ""
		}
		i += next
		n, ends, partial := tagLength(s[i:])
		if n > 0 || partial {
			return s[:i], s[i : i+n], ends, s[i+n:]
		}
	}
}

// tagLength returns the length of the tag that the text begins with, and whether it is an end tag;
// 0 = none, and partial says whether more text may make it one.
func tagLength(s string) (n int, ends, partial bool) {
	for _, pair := range thoughtTags {
		for i, tag := range []string{pair.begin, pair.end} {
			switch size := min(len(s), len(tag)); {
			case size == 0 || !strings.EqualFold(s[:size], tag[:size]):
			case size == len(tag):
				return size, i == 1, false
			default:
				partial = true
			}
		}
	}
	return 0, false, partial
}
