package repositories

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bobbin/app/core/searchtext"
	"bobbin/app/db/models"
)

// postgresEntry is a row of search_entries with its words.
type postgresEntry struct {
	models.SearchText

	Words string // as text of a tsvector
}

// TableName is the table's name.
func (postgresEntry) TableName() string { return "search_entries" }

// The capacity of a tsvector: positions up to 16,383, at most 255 for each word, and 1 MiB
// in all.
const (
	maxPosition  = 16383
	maxPositions = 255
	maxVector    = 1<<20 - 64<<10
)

// wordInexact marks a text whose positions do not all fit a tsvector: it has all words. Of the phrases that a
// message must have, searchtext checks it; it ranks as if it had all phrases whose words it has.
const wordInexact = "_x"

func postgresEntryOf(e entry, d searchtext.Document) postgresEntry {
	scope := e.scopeWords()
	at := make(map[string][]int, len(d.Words))
	exact := len(d.Words) < maxPosition
	size := 0
	for i, w := range d.Words {
		list, known := at[w]
		if !known {
			size += len(w) + 4
		}
		if size += 2; len(list) == maxPositions {
			exact = false
			continue
		}
		at[w] = append(list, i+1)
	}
	var b strings.Builder
	if exact = exact && size < maxVector; !exact {
		scope = append(slices.Clip(scope), wordInexact)
	}
	for w, list := range at {
		writeLexeme(&b, w)
		if exact {
			between := byte(':')
			for _, n := range list {
				b.WriteByte(between)
				b.WriteString(strconv.Itoa(n))
				between = ','
			}
		}
		b.WriteByte(' ')
	}
	for _, w := range slices.Concat(d.Parts, d.Stems, scope) {
		writeLexeme(&b, w)
		b.WriteByte(' ')
	}
	return postgresEntry{e.SearchText, b.String()}
}

// writeLexeme writes a word. Words contain no quotation marks and no backslashes.
func writeLexeme(b *strings.Builder, w string) {
	b.WriteByte('\'')
	b.WriteString(w)
	b.WriteByte('\'')
}

// matchPostgres returns the condition for entries e that match the query.
func matchPostgres(q searchtext.Query, scope []string) (string, []any) {
	var words, phrases []string
	for _, w := range scope {
		words = append(words, "'"+w+"'")
	}
	for _, t := range q.Terms {
		list := make([]string, len(t.Words))
		for i, w := range t.Words {
			list[i] = "'" + w + "'"
			if t.Prefix && i == len(t.Words)-1 {
				list[i] += ":*"
			}
		}
		phrase := strings.Join(list, " <-> ")
		if t.Whole != "" {
			phrase += " | '" + t.Whole + "'"
			list = []string{fmt.Sprintf("(%s | '%s')", strings.Join(list, " & "), t.Whole)}
		}
		switch {
		case len(t.Words) == 1 && t.Not:
			words = append(words, "!"+list[0])
		case len(t.Words) == 1:
			words = append(words, list[0])
		case t.Not:
			phrases = append(phrases, fmt.Sprintf("!(%s)", phrase))
		default:
			words = append(words, list...)
			phrases = append(phrases, fmt.Sprintf("(%s)", phrase))
		}
	}
	must, exactly := strings.Join(words, " & "), strings.Join(phrases, " & ")
	if exactly == "" {
		return "e.words @@ CAST(? AS tsquery)", []any{must}
	}
	placed := "e.words"
	if slices.ContainsFunc(q.Terms, func(t searchtext.Term) bool { return t.Prefix && len(t.Words) > 1 }) {
		// PostgreSQL finds no phrase if a word without a position, a part or a stem, has the prefix, too.
		placed = "ts_filter(e.words, '{d}')"
	}
	return "(e.words @@ CAST(? AS tsquery) AND (" + placed + " @@ CAST(? AS tsquery) OR e.words @@ CAST(? AS tsquery)))",
		[]any{must, exactly, "'" + wordInexact + "'"}
}
