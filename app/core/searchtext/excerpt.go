package searchtext

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"bobbin/app/core"
)

// maxEdgeShift is how far an edge of an excerpt may move to the end of a word, in
// characters.
const maxEdgeShift = 20

// Excerpt returns about size characters of the text around the spans of Find, where most
// terms of the query are close together, and the spans within the excerpt. White space
// becomes one blank; … marks omitted text. Without spans it is the beginning of the text.
func Excerpt(text string, spans []Span, size int) (string, []Span) {
	start, end := chooseWindow(text, spans, size)
	e := excerpt{}
	if start > 0 {
		e.b.WriteString("…")
	}
	inside := 0
	for _, s := range spans {
		if s.Start < start || s.Start >= end {
			continue
		}
		e.write(text[max(start, inside):s.Start])
		from := e.b.Len()
		inside = min(s.End, end)
		e.write(text[s.Start:inside])
		e.spans = append(e.spans, Span{Start: from, End: e.b.Len()})
	}
	e.write(text[max(start, inside):end])
	out := strings.TrimRight(e.b.String(), " ")
	if end < len(text) {
		out += "…"
	}
	return out, e.spans
}

// excerpt builds an excerpt.
type excerpt struct {
	b     strings.Builder
	blank bool // was written last
	spans []Span
}

func (e *excerpt) write(text string) {
	for _, r := range text {
		switch {
		case unicode.IsSpace(r):
			if !e.blank && e.b.Len() > 0 {
				e.b.WriteByte(' ')
			}
			e.blank = true
		case unicode.IsControl(r):
		default:
			e.b.WriteRune(r)
			e.blank = false
		}
	}
}

// chooseWindow returns the part of the text to show.
func chooseWindow(text string, spans []Span, size int) (start, end int) {
	first, last := densestSpans(text, spans, size)
	if len(spans) > 0 {
		used := utf8.RuneCountInString(text[spans[first].Start:spans[last].End])
		start = skipBack(text, spans[first].Start, max(0, size-used)/3)
		start = min(start, skipBack(text, len(text), size)) // never less than fits, at the end of the text
		start = wordStart(text, start, spans[first].Start)
	}
	end = skipForward(text, start, size)
	if len(spans) > 0 {
		end = max(end, skipForward(text, spans[first].Start, min(size, utf8.RuneCountInString(text[spans[first].Start:spans[first].End]))))
	}
	return start, wordEnd(text, spans, start, end)
}

// densestSpans returns the first and the last span of the part of size characters with
// the most different terms, and among equals the most spans.
func densestSpans(text string, spans []Span, size int) (first, last int) {
	best, bestTerms := 0, 0
	for i := range spans {
		terms, limit := map[int]bool{}, spans[i].Start+size // in bytes: near enough
		j := i
		for ; j < len(spans) && j < i+64 && (j == i || spans[j].End <= limit); j++ {
			terms[spans[j].term] = true
		}
		if len(terms) > bestTerms || len(terms) == bestTerms && j-i > best {
			first, last, best, bestTerms = i, j-1, j-i, len(terms)
		}
		if i > 1000 {
			break // enough to choose from
		}
	}
	return first, last
}

// skipBack returns the place n characters before at.
func skipBack(text string, at, n int) int {
	for ; n > 0 && at > 0; n-- {
		_, size := utf8.DecodeLastRuneInString(text[:at])
		at -= size
	}
	return at
}

// skipForward returns the place n characters after at.
func skipForward(text string, at, n int) int {
	for ; n > 0 && at < len(text); n-- {
		_, size := utf8.DecodeRuneInString(text[at:])
		at += size
	}
	return at
}

// wordStart moves the start behind the next blank, if one is near and before the limit.
func wordStart(text string, start, limit int) int {
	if before, _ := utf8.DecodeLastRuneInString(text[:start]); start == 0 || unicode.IsSpace(before) {
		return start
	}
	near := min(skipForward(text, start, maxEdgeShift), limit)
	if i := strings.IndexFunc(text[start:near], unicode.IsSpace); i >= 0 {
		return skipForward(text, start+i, 1)
	}
	return start
}

// wordEnd moves the end before the last blank, if one is near and behind the last span.
func wordEnd(text string, spans []Span, start, end int) int {
	if next, _ := utf8.DecodeRuneInString(text[end:]); end == len(text) || unicode.IsSpace(next) {
		return end
	}
	near := max(skipBack(text, end, maxEdgeShift), start)
	for _, s := range spans {
		if s.Start < end {
			near = max(near, min(s.End, end))
		}
	}
	if i := strings.LastIndexFunc(text[near:end], unicode.IsSpace); i >= 0 {
		return near + i
	}
	return end
}

// Pieces cuts an excerpt at its spans.
func Pieces(excerpt string, spans []Span) []core.Piece {
	pieces, at := []core.Piece{}, 0
	for _, s := range spans {
		if at < s.Start {
			pieces = append(pieces, core.Piece{Text: excerpt[at:s.Start]})
		}
		pieces = append(pieces, core.Piece{Text: excerpt[s.Start:s.End], Match: true})
		at = s.End
	}
	if at < len(excerpt) {
		pieces = append(pieces, core.Piece{Text: excerpt[at:]})
	}
	return pieces
}
