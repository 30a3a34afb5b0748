package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"bobbin/app/core"
)

// Export writes the session out as it is now, page by page: with JSON and JSON
// lines the whole log, other branches too, but what was deleted; as Markdown the
// conversation as it is read. A branch that is selected meanwhile counts from the
// next page on. The errors are those of storage and of w.
func (s *Service) Export(ctx context.Context, scope core.Scope, session core.Session, format core.ExportFormat, w io.Writer) error {
	out := bufio.NewWriterSize(w, 64<<10)
	var err error
	switch format {
	case core.ExportJSON:
		err = s.exportJSON(ctx, scope, session, out)
	case core.ExportLines:
		err = s.each(ctx, scope, session, true, func(m core.Message) error { return writeJSON(out, "", m, "\n") })
	case core.ExportMarkdown:
		md := markdown{out: out}
		md.title(session)
		err = s.each(ctx, scope, session, false, md.message)
	default:
		return core.Errorf(core.ErrInvalid, "format %q must be json, jsonl or markdown", core.Clip(string(format), 40))
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// each calls do with every message that the session has now.
func (s *Service) each(ctx context.Context, scope core.Scope, session core.Session, all bool, do func(core.Message) error) error {
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}, AllBranches: all}
	for {
		page, err := s.messages.List(ctx, scope, session.ID, q)
		if err != nil {
			return fmt.Errorf("export messages: %w", err)
		}
		for _, m := range page.Items {
			if m.Seq > session.LastSeq {
				return nil
			}
			if err := do(m); err != nil {
				return err
			}
		}
		if page.NextCursor == nil {
			return nil
		}
		q.Cursor = *page.NextCursor
	}
}

func (s *Service) exportJSON(ctx context.Context, scope core.Scope, session core.Session, out *bufio.Writer) error {
	if err := writeJSON(out, `{"session":`, session, ""); err != nil {
		return err
	}
	if _, err := out.WriteString(`,"messages":[`); err != nil {
		return err
	}
	before := "\n"
	err := s.each(ctx, scope, session, true, func(m core.Message) error {
		defer func() { before = ",\n" }()
		return writeJSON(out, before, m, "")
	})
	if err != nil {
		return err
	}
	if _, err := out.WriteString("\n]," + `"summaries":[`); err != nil {
		return err
	}
	if err := s.exportSummaries(ctx, scope, session, out); err != nil {
		return err
	}
	_, err = out.WriteString("\n]}\n")
	return err
}

func (s *Service) exportSummaries(ctx context.Context, scope core.Scope, session core.Session, out *bufio.Writer) error {
	before := "\n"
	q := core.PageQuery{Limit: core.MaxPageLimit}
	for {
		page, err := s.summaries.List(ctx, scope, session.ID, q)
		if err != nil {
			return fmt.Errorf("export summaries: %w", err)
		}
		for _, summary := range page.Items {
			if err := writeJSON(out, before, summary, ""); err != nil {
				return err
			}
			before = ",\n"
		}
		if page.NextCursor == nil {
			return nil
		}
		q.Cursor = *page.NextCursor
	}
}

// writeJSON writes a value on one line, between two texts.
func writeJSON(out *bufio.Writer, before string, v any, after string) error {
	if _, err := out.WriteString(before); err != nil {
		return err
	}
	if _, err := out.Write(encode(v)); err != nil {
		return err
	}
	_, err := out.WriteString(after)
	return err
}

// prettyArguments returns arguments as they are read best: indented if they are
// JSON, else as they are.
func prettyArguments(text string) string {
	var b bytes.Buffer
	if json.Indent(&b, []byte(text), "", "  ") != nil {
		return text
	}
	return b.String()
}
