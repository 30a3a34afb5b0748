package transfer

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"bobbin/app/core"
	"bobbin/app/core/compaction"
)

// Export writes the session out as it is now, page by page: with JSON and JSON
// lines the whole log, other branches too, but what was deleted; as Markdown the
// conversation as it is read. A branch that is selected meanwhile counts from the
// next page on. Some exports at once are made in this process, as of ExportUser. Further errors are
// those of storage and of w.
func (s *Service) Export(ctx context.Context, tenant core.Tenant, session core.Session, format core.ExportFormat, w io.Writer) error {
	release, err := s.exports.Place(ctx, tenant)
	defer release()
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, 64<<10)
	switch format {
	case core.ExportJSON:
		_, err = s.exportJSON(ctx, tenant, session, out)
	case core.ExportLines:
		err = s.eachMessage(ctx, tenant, session, true, func(m core.Message) error { return writeJSON(out, "", m, "\n") })
	case core.ExportMarkdown:
		md := markdown{out: out}
		md.writeTitle(session)
		err = s.eachMessage(ctx, tenant, session, false, md.writeMessage)
	default:
		return core.Errorf(core.ErrInvalid, "format %q must be json, jsonl or markdown", core.Clip(string(format), 40))
	}
	if err != nil {
		return err
	}
	return out.Flush()
}

// eachMessage calls do with every message that the session has now; with all also with those
// of other branches, and with revisions.
func (s *Service) eachMessage(ctx context.Context, tenant core.Tenant, session core.Session, all bool, do func(core.Message) error) error {
	// Its reader may be slow: no more is in memory than of other answers.
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit, Bytes: core.MaxPageBytes}, AllBranches: all, Revisions: all}
	for {
		page, err := s.messages.List(ctx, tenant, session.ID, q)
		if err != nil {
			return fmt.Errorf("export messages: %w", err)
		}
		for _, m := range page.Items {
			if m.Seq > session.LastSeq {
				return nil
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
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

// exported counts what an export has.
type exported struct{ Messages, Summaries int }

func (s *Service) exportJSON(ctx context.Context, tenant core.Tenant, session core.Session, out *bufio.Writer) (n exported, err error) {
	if err := writeJSON(out, `{"session":`, session, ""); err != nil {
		return n, err
	}
	if _, err := out.WriteString(`,"messages":[`); err != nil {
		return n, err
	}
	before := "\n"
	err = s.eachMessage(ctx, tenant, session, true, func(m core.Message) error {
		n.Messages++
		defer func() { before = ",\n" }()
		return writeJSON(out, before, m, "")
	})
	if err != nil {
		return n, err
	}
	if _, err := out.WriteString("\n]," + `"summaries":[`); err != nil {
		return n, err
	}
	if n.Summaries, err = s.exportSummaries(ctx, tenant, session, out); err != nil {
		return n, err
	}
	if _, err = out.WriteString("\n]"); err == nil {
		err = s.exportInstructions(ctx, tenant, session, out)
	}
	if err == nil {
		_, err = out.WriteString("}\n")
	}
	return n, err
}

// exportInstructions writes the standing instructions of the current path, if there are any,
// the oldest first.
func (s *Service) exportInstructions(ctx context.Context, tenant core.Tenant, session core.Session, out *bufio.Writer) error {
	if s.instructions == nil || session.StandingCount == 0 {
		return nil
	}
	given, err := s.instructions.OnPath(ctx, tenant, session.ID, core.MaxInstructions)
	if err != nil {
		return fmt.Errorf("export standing instructions: %w", err)
	}
	before := `,"standing_instructions":[` + "\n"
	for _, i := range compaction.ResolveInstructions(given) {
		if err := writeJSON(out, before, i, ""); err != nil {
			return err
		}
		before = ",\n"
	}
	if before == ",\n" {
		_, err = out.WriteString("\n]")
	}
	return err
}

// exportSummaries writes all versions and returns how many there are.
func (s *Service) exportSummaries(ctx context.Context, tenant core.Tenant, session core.Session, out *bufio.Writer) (n int, err error) {
	before := "\n"
	q := core.PageQuery{Limit: core.MaxPageLimit}
	for {
		page, err := s.summaries.List(ctx, tenant, session.ID, q)
		if err != nil {
			return n, fmt.Errorf("export summaries: %w", err)
		}
		for _, summary := range page.Items {
			if err := writeJSON(out, before, summary, ""); err != nil {
				return n, err
			}
			before = ",\n"
			n++
		}
		if page.NextCursor == nil {
			return n, nil
		}
		q.Cursor = *page.NextCursor
	}
}

// writeJSON writes a value on one line, between two texts.
func writeJSON(out *bufio.Writer, before string, v any, after string) error {
	if _, err := out.WriteString(before); err != nil {
		return err
	}
	if _, err := out.Write(mustEncode(v)); err != nil {
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
