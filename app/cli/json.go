package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"bobbin/app/api"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// withJSON adds the flag --json to the commands: one JSON document on the standard output,
// with the field names of the API, and errors as problem details (RFC 9457) on the standard
// error.
func (p *program) withJSON(cmds ...*cobra.Command) {
	for _, cmd := range cmds {
		cmd.Flags().BoolVar(&p.json, "json", false, "print one JSON document; errors, too")
	}
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

// problem is an error as --json prints it; the fields are those of the API.
type problem struct {
	Type      string            `json:"type"`
	Title     string            `json:"title"`
	Status    int               `json:"status"`
	Detail    string            `json:"detail"`
	Code      string            `json:"code"`
	RequestID string            `json:"request_id,omitempty"`
	Errors    []core.FieldError `json:"errors,omitempty"`
}

// problemOf returns the problem for an error. It does not change what the server answered.
func problemOf(err error) problem {
	var answered *client.ProblemError
	if errors.As(err, &answered) {
		return problem{answered.Type, answered.Title, answered.Status, answered.Error(), answered.Code, answered.RequestID, answered.Errors}
	}
	status, title, code := api.Classify(err)
	out := problem{Type: "urn:bobbin:problem:" + code, Title: title, Status: status, Detail: term.ErrorText(err), Code: code}
	var shown *core.Error
	if errors.As(err, &shown) {
		out.Detail, out.Errors = shown.Message, shown.Fields
	}
	return out
}

// silentError is the error of a command that has already printed it.
type silentError struct{ text string }

// Error returns what was printed.
func (e *silentError) Error() string { return e.text }
