package transfer

import (
	"archive/zip"
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// UserStores are what exports of users are read from. All are required.
type UserStores struct {
	Sessions core.SessionStore
	Runs     core.RunStore
	Memories *repositories.Memories
	Blobs    core.BlobStore
	Usage    core.UsageStore
	More     *repositories.Purges
}

// exportRows is how much of a list is in memory.
const exportRows = 50

// ExportUser writes everything of a user as a ZIP archive while it is read: no more than a
// page of messages, or one file, is in memory. The archive has its directory at its end, so
// that one that broke off is not taken for whole. What is written meanwhile may be in it or
// not; a session that is deleted meanwhile is left out or ends the export with an error.
//
// Some exports at once are made in this process; others wait for their turn, and after
// some seconds they are refused: ErrRateLimited or ErrUnavailable. Further errors are those
// of storage and of w.
func (s *Service) ExportUser(ctx context.Context, caller core.Tenant, in core.UserExport, w io.Writer) error {
	release, err := s.exports.Place(ctx, caller)
	defer release()
	if err != nil {
		return err
	}
	const enough = 64 << 10 // for an archive without data: nothing of one is sent
	out := bufio.NewWriterSize(w, enough)
	e := &userExport{
		service: s, in: in, scope: core.Tenant{Owner: in.Owner, User: in.User}, zip: zip.NewWriter(out), now: core.Now(),
	}
	info := core.UserExportInfo{Format: core.UserExportFormat, Version: core.UserExportVersion, User: e.in.User, ExportedAt: e.now}
	if err := e.writeValue("export.json", info); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{e.writeSessions, e.writeElsewhere, e.writeMemories, e.writeFiles, e.writeUsage, e.writeKeys} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("export: %w", err)
		}
	}
	if err := e.writeValue("counts.json", e.counts); err != nil {
		return err
	}
	if e.counts == (core.UserExportCounts{Keys: e.counts.Keys}) && in.OwnersView {
		return core.Errorf(core.ErrNotFound, "the owner %q has no data of the user %q; check the names", in.Owner, in.User)
	}
	return errors.Join(e.zip.Close(), out.Flush())
}

// userExport is an export of a user that is being written.
type userExport struct {
	service *Service
	in      core.UserExport
	scope   core.Tenant
	zip     *zip.Writer
	now     time.Time
	counts  core.UserExportCounts
}

func (e *userExport) beginFile(name string, method uint16, fill func(*bufio.Writer) error) error {
	f, err := e.zip.CreateHeader(&zip.FileHeader{Name: name, Method: method, Modified: e.now})
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(f, 64<<10)
	if err := fill(out); err != nil {
		return err
	}
	return out.Flush()
}

func (e *userExport) writeValue(name string, v any) error {
	return e.beginFile(name, zip.Deflate, func(out *bufio.Writer) error { return writeJSON(out, "", v, "\n") })
}

// writeLines writes a file with the items of a list, each on its line as show returns it.
func writeLines[T any](e *userExport, name string, list func(cursor string) (core.Page[T], error), show func(T) any) error {
	return e.beginFile(name, zip.Deflate, func(out *bufio.Writer) error {
		return core.EachPage(list, func(item T) error { return writeJSON(out, "", show(item), "\n") })
	})
}

// writeSessions writes a file for each session, as Export does, and one for its runs.
func (e *userExport) writeSessions(ctx context.Context) error {
	q := core.SessionQuery{Order: core.OrderByCreation, Archived: true}
	return core.EachPage(func(cursor string) (core.Page[core.Session], error) {
		q.PageQuery = exportPage(cursor)
		return e.service.Users.Sessions.List(ctx, e.scope, q)
	}, func(session core.Session) error { return e.writeSession(ctx, session) })
}

func exportPage(cursor string) core.PageQuery {
	return core.PageQuery{Cursor: cursor, Limit: exportRows, Bytes: core.MaxPageBytes}
}

func (e *userExport) writeSession(ctx context.Context, session core.Session) error {
	if !e.in.OwnersView {
		session.Webhook = nil
	}
	e.counts.Sessions++
	err := e.beginFile("sessions/"+string(session.ID)+".json", zip.Deflate, func(out *bufio.Writer) error {
		n, err := e.service.exportJSON(ctx, e.scope, session, out)
		e.counts.Messages += n.Messages
		e.counts.Summaries += n.Summaries
		return err
	})
	if err != nil {
		return err
	}
	return writeLines(e, "runs/"+string(session.ID)+".jsonl", func(cursor string) (core.Page[core.Run], error) {
		return e.service.Users.Runs.List(ctx, e.scope, session.ID, exportPage(cursor))
	}, func(run core.Run) any {
		if !e.in.OwnersView {
			run.Webhook = nil
		}
		e.counts.Runs++
		return run
	})
}

func (e *userExport) writeElsewhere(ctx context.Context) error {
	return writeLines(e, "messages_elsewhere.jsonl", pagesAfter(func(after core.MessageID) ([]core.Message, error) {
		return e.service.Users.More.Elsewhere(ctx, e.in.Owner, e.in.User, after, exportRows)
	}, func(m core.Message) core.MessageID { return m.ID }), func(m core.Message) any {
		e.counts.MessagesElsewhere++
		return m
	})
}

func (e *userExport) writeMemories(ctx context.Context) error {
	return writeLines(e, "memories.jsonl", func(cursor string) (core.Page[core.Memory], error) {
		return e.service.Users.Memories.List(ctx, e.scope, exportPage(cursor))
	}, func(m core.Memory) any {
		e.counts.Memories++
		return m
	})
}

// writeFiles writes each file's content and then the list of them.
func (e *userExport) writeFiles(ctx context.Context) error {
	files := pagesAfter(func(after core.BlobID) ([]core.Blob, error) {
		return e.service.Users.More.Files(ctx, e.in.Owner, e.in.User, after, exportRows)
	}, func(b core.Blob) core.BlobID { return b.ID })
	err := core.EachPage(files, func(b core.Blob) error {
		_, data, err := e.service.Users.Blobs.Open(ctx, core.Tenant{Owner: e.in.Owner}, b.ID)
		if errors.Is(err, core.ErrNotFound) { // deleted meanwhile
			return nil
		}
		if err != nil {
			return err
		}
		e.counts.Files++
		e.counts.FileBytes += int64(len(data))
		return e.beginFile(archiveName(b), zip.Store, func(out *bufio.Writer) error {
			_, err := out.Write(data)
			return err
		})
	})
	if err != nil {
		return err
	}
	return writeLines(e, "files.jsonl", files, func(b core.Blob) any {
		return struct {
			core.Blob
			File string `json:"file"` // in the archive
		}{b, archiveName(b)}
	})
}

// pagesAfter returns the pages of a list that is read in parts of exportRows, after an id.
func pagesAfter[T any, ID ~string](list func(after ID) ([]T, error), id func(T) ID) func(cursor string) (core.Page[T], error) {
	return func(cursor string) (page core.Page[T], err error) {
		page.Items, err = list(ID(cursor))
		if n := len(page.Items); n == exportRows {
			page.NextCursor = new(string(id(page.Items[n-1])))
		}
		return page, err
	}
}

// archiveName is a file's place in the archive: its id keeps names apart, and its name was cleaned when it
// was uploaded (attach.Name).
func archiveName(b core.Blob) string { return "files/" + string(b.ID) + "-" + b.Name }

// writeUsage writes what the user's model calls came to, a line for each day.
func (e *userExport) writeUsage(ctx context.Context) error {
	q := core.UsageQuery{GroupBy: core.UsageByDay, From: time.Unix(0, 0).UTC(), To: e.now.Add(24 * time.Hour).Truncate(24 * time.Hour)}
	q.Limit = core.MaxPageLimit
	return writeLines(e, "usage.jsonl", func(cursor string) (core.Page[core.UsageRow], error) {
		q.Cursor = cursor
		report, err := e.service.Users.Usage.Usage(ctx, e.scope, q)
		return core.Page[core.UsageRow]{Items: report.Items, NextCursor: report.NextCursor}, err
	}, func(row core.UsageRow) any { return row })
}

// writeKeys writes the owner's API keys, which have no secrets. They are not for end users.
func (e *userExport) writeKeys(ctx context.Context) error {
	if !e.in.OwnersView {
		return nil
	}
	keys, err := e.service.Users.More.Keys(ctx, e.in.Owner)
	e.counts.Keys = len(keys)
	if err != nil {
		return err
	}
	return writeLines(e, "keys.jsonl", func(string) (core.Page[core.APIKey], error) { return core.Page[core.APIKey]{Items: keys}, nil },
		func(k core.APIKey) any { return k })
}
