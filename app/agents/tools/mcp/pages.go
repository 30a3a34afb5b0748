package mcp

import (
	"fmt"
	"strings"

	"bobbin/app/core"
)

// Bounds of one list of a server.
const (
	maxPages  = 64
	maxCursor = 4 << 10 // bytes
)

// readPages calls page with each cursor of a list, the first of which is empty. It reports whether
// the list ended: it did not after maxPages, or when the server repeats a cursor or sends one that is
// too long.
func readPages(page func(cursor string) (next string, err error)) (ended bool, err error) {
	read, cursor := map[string]bool{}, ""
	for len(read) < maxPages && len(cursor) <= maxCursor && !read[cursor] {
		read[cursor] = true
		if cursor, err = page(cursor); err != nil || cursor == "" {
			return err == nil, err
		}
	}
	return false, nil
}

// entryList is a list of a server as a model reads it: the first maxEntries, and how many there are.
type entryList struct {
	what  string // resources, resource templates or prompts
	lines []string
	total int
	ended bool // the server's list was read to its end
}

// collect reads the pages of the list.
func (l *entryList) collect(page func(cursor string) (next string, err error)) (err error) {
	l.ended, err = readPages(page)
	return err
}

// add adds an entry.
func (l *entryList) add(name, detail, description string) {
	if l.total++; l.total > maxEntries {
		return
	}
	line := core.Clip(name, 500)
	if detail != "" {
		line += " (" + core.Clip(detail, 200) + ")"
	}
	if description != "" {
		line += ": " + core.Clip(strings.Join(strings.Fields(description), " "), 300)
	}
	l.lines = append(l.lines, line)
}

// text returns the list. If it is not whole it says what is missing, and the hint.
func (l *entryList) text(hint string) string {
	if l.total == 0 && l.ended {
		return "there are no " + l.what
	}
	text := strings.Join(l.lines, "\n")
	var missing []string
	if left := l.total - len(l.lines); left > 0 {
		missing = append(missing, fmt.Sprintf("%d more %s were left out", left, l.what))
	}
	if !l.ended {
		missing = append(missing, "the list has no end and was not read further")
	}
	if len(missing) > 0 {
		text += "\n[" + strings.Join(missing, ", ") + "; " + hint + "]"
	}
	return strings.TrimPrefix(text, "\n")
}
