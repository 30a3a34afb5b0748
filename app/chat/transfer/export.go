package transfer

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

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
		fmt.Fprintf(out, "# %s\n\n", escapeInline(cmp.Or(session.Title, "Conversation")))
		fmt.Fprintf(out, "Session %s · agent %s · %s · %d messages\n", session.ID, escapeInline(session.Agent), session.CreatedAt.UTC().Format("2006-01-02"), session.MessageCount)
		err = s.eachMessage(ctx, tenant, session, false, md.writeMessage)
	default:
		return core.Errorf(core.ErrInvalid, "format %q must be json, jsonl or markdown", core.Clip(string(format), 40))
	}
	if err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return out.Flush()
}

// maxRest bounds how long an export rests after a page.
const maxRest = 100 * time.Millisecond

// eachMessage calls do with every message that the session has now; with all also with those
// of other branches, and with revisions.
func (s *Service) eachMessage(ctx context.Context, tenant core.Tenant, session core.Session, all bool, do func(core.Message) error) error {
	// Its reader may be slow: no more is in memory than of other answers.
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit, Bytes: core.MaxPageBytes}, AllBranches: all, Revisions: all}
	began := time.Now() // with the page before
	return core.EachPage(func(cursor string) (core.Page[core.Message], error) {
		select { // so that a user's exports leave others a part of each processor
		case <-ctx.Done():
		case <-time.After(min(time.Since(began)/4, maxRest)):
		}
		began, q.Cursor = time.Now(), cursor
		page, err := s.Messages.List(ctx, tenant, session.ID, q)
		if n := len(page.Items); n > 0 && page.Items[n-1].Seq > session.LastSeq { // it came meanwhile
			page.Items = slices.DeleteFunc(page.Items, func(m core.Message) bool { return m.Seq > session.LastSeq })
			page.NextCursor = nil
		}
		return page, err
	}, func(m core.Message) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return do(m)
	})
}

// exported counts what an export has.
type exported struct{ Messages, Summaries int }

func (s *Service) exportJSON(ctx context.Context, tenant core.Tenant, session core.Session, out *bufio.Writer) (n exported, err error) {
	if err := writeJSON(out, `{"session":`, session, `,"messages":[`); err != nil {
		return n, err
	}
	before := "\n"
	writeItem := func(v any) error {
		err := writeJSON(out, before, v, "")
		before = ",\n"
		return err
	}
	beginList := func(name string) {
		_, _ = fmt.Fprintf(out, "\n],%q:[", name) // Flush returns its error
		before = "\n"
	}
	err = s.eachMessage(ctx, tenant, session, true, func(m core.Message) error { n.Messages++; return writeItem(m) })
	if err != nil {
		return n, err
	}
	beginList("summaries")
	err = core.EachPage(func(cursor string) (core.Page[core.Summary], error) {
		return s.Summaries.List(ctx, tenant, session.ID, core.PageQuery{Cursor: cursor, Limit: core.MaxPageLimit})
	}, func(summary core.Summary) error { n.Summaries++; return writeItem(summary) })
	if err != nil {
		return n, err
	}
	var given []core.StandingInstruction
	if s.Instructions != nil {
		if given, err = s.Instructions.OnPath(ctx, tenant, session.ID, math.MaxInt64, core.MaxInstructions); err != nil {
			return n, fmt.Errorf("standing instructions: %w", err)
		}
	}
	for i, instruction := range compaction.ResolveInstructions(given) { // the oldest first
		if i == 0 {
			beginList("standing_instructions")
		}
		if err := writeItem(instruction); err != nil {
			return n, err
		}
	}
	_, err = out.WriteString("\n]}\n")
	return n, err
}

// writeJSON writes a value on one line, between two texts.
func writeJSON(out *bufio.Writer, before string, v any, after string) error {
	raw, err := core.EncodeJSON(v)
	if err == nil {
		_, err = fmt.Fprint(out, before, string(raw), after)
	}
	return err
}
