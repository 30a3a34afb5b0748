package mcp

import (
	"strings"

	"bobbin/app/core"
)

// Bounds of one list of a server.
const (
	maxPages   = 64
	maxCursor  = 4 << 10 // bytes
	maxEntries = 100     // of a list of resources or resource templates that a model reads
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

// listEntries returns the first maxEntries entries of a list as a model reads them, and says if there
// are others; empty = there are none.
func listEntries(what string, page func(cursor string) (entries []string, next string, err error)) (string, error) {
	var lines []string
	ended, err := readPages(func(cursor string) (string, error) {
		entries, next, err := page(cursor)
		lines = append(lines, entries...)
		if len(lines) > maxEntries {
			next = cursor // it is not read further
		}
		return next, err
	})
	if err != nil {
		return "", err
	}
	text := strings.Join(lines[:min(len(lines), maxEntries)], "\n")
	if !ended || len(lines) > maxEntries {
		text += "\n[other " + what + " are not listed, and can be read, too]"
	}
	return text, nil
}

// entryText returns an entry of a list.
func entryText(name, detail, description string) string {
	line := core.Clip(name, 500)
	if detail != "" {
		line += " (" + core.Clip(detail, 200) + ")"
	}
	if description != "" {
		line += ": " + core.Clip(strings.Join(strings.Fields(description), " "), 300)
	}
	return line
}
