package cli

import (
	"fmt"
	"strings"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// list is how the items of a page are printed.
type list[T any] struct {
	none   string // what is printed instead if there are none
	titles string // of the columns, with | between them
	cells  func(T) []any
	next   string // the command that prints the next page
}

// printList prints a page: with --json as one document, otherwise as a table.
func printList[T any](p *program, page core.Page[T], l list[T]) error {
	switch {
	case p.json:
		return p.printJSON(page)
	case len(page.Items) == 0:
		fmt.Fprintln(p.Out, l.none)
		return nil
	}
	rows := [][]string{strings.Split(l.titles, "|")}
	for _, item := range page.Items {
		values := l.cells(item)
		cells := make([]string, len(values))
		for i, v := range values {
			if at, isTime := v.(time.Time); isTime {
				v = at.Local().Format(time.DateTime)
			}
			cells[i] = term.Line(fmt.Sprint(v), 0)
		}
		rows = append(rows, cells)
	}
	width, _ := p.terminalSize()
	term.WriteTable(p.Out, rows, width)
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: %s\n", p.suggestCommand(append(strings.Fields(l.next), "--cursor", *page.NextCursor)...))
	}
	return nil
}
