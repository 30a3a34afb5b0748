package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/api"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// withJSON returns the command with the flag --json: one JSON document on the standard output,
// with the field names of the API, and errors as problem details (RFC 9457) on the standard
// error.
func (p *program) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&p.json, "json", false, "print one JSON document; errors, too")
	return cmd
}

// printJSON prints a document as every command with --json does.
func (p *program) printJSON(v any) error { return writeJSON(p.Out, v) }

// printOrDraw prints v as JSON with --json; otherwise it calls draw with the size of the
// terminal. It returns err if that is not nil.
func (p *program) printOrDraw(v any, err error, draw func(width, height int)) error {
	switch {
	case err != nil:
		return err
	case p.json:
		return p.printJSON(v)
	}
	draw(p.terminalSize())
	return nil
}

// noticeWriter returns where to write what is not part of the JSON document: nowhere with
// --json.
func (p *program) noticeWriter() io.Writer {
	if p.json {
		return io.Discard
	}
	return p.Out
}

func writeJSON(w io.Writer, v any) error {
	var document bytes.Buffer
	enc := json.NewEncoder(&document)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(term.CleanJSON(document.Bytes()))
	return err
}

// problemOf returns an error as --json prints it. It does not change what the server answered.
func problemOf(err error) client.ProblemError {
	if answered, ok := errors.AsType[*client.ProblemError](err); ok {
		out := *answered
		out.Detail, out.Instance = answered.Error(), ""
		return out
	}
	out := client.ProblemError{Problem: api.ProblemOf(err)}
	out.Detail = core.ShownMessage(err, term.ErrorText(err))
	return out
}

// silentError is the error of a command that has already printed it.
type silentError struct{ text string }

// Error returns what was printed.
func (e *silentError) Error() string { return e.text }

// list is how the items of a page are printed.
type list[T any] struct {
	none   string // what is printed instead if there are none
	titles string // of the columns, with | between them
	cells  func(T) []any
	next   string // the command that prints the next page
}

// printList prints a page: with --json as one document, otherwise as a table. It returns err if that is
// not nil.
func printList[T any](p *program, page core.Page[T], err error, l list[T]) error {
	switch {
	case err != nil:
		return err
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
