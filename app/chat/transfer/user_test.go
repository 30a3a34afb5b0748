package transfer_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// user is the stores of a user with one session and one file.
type user struct {
	*world
	name string        // of the file
	hold chan struct{} // what the list of sessions waits for; nil = nothing
}

type (
	userSessions struct {
		core.SessionStore
		*user
	}
	userRuns     struct{ core.RunStore }
	userMemories struct{ core.MemoryStore }
	userBlobs    struct{ core.BlobStore }
	userUsage    struct{ core.UsageStore }
)

func (u userSessions) List(ctx context.Context, _ core.Tenant, q core.SessionQuery) (core.Page[core.Session], error) {
	if u.hold != nil {
		select {
		case <-u.hold:
		case <-ctx.Done():
			return core.Page[core.Session]{}, ctx.Err()
		}
	}
	if !q.Archived || q.Order != core.OrderByCreation {
		return core.Page[core.Session]{}, errors.New("the list leaves sessions out")
	}
	return core.Page[core.Session]{Items: []core.Session{u.session}}, nil
}

func (u userRuns) List(context.Context, core.Tenant, core.SessionID, core.PageQuery) (core.Page[core.Run], error) {
	return core.Page[core.Run]{Items: []core.Run{{ID: "run", Webhook: &core.Webhook{URL: "https://hooks.example/hush"}}}}, nil
}

func (u userMemories) List(context.Context, core.Tenant, core.PageQuery) (core.Page[core.Memory], error) {
	return core.Page[core.Memory]{Items: []core.Memory{{Content: "likes tea"}}}, nil
}

func (u userUsage) Usage(context.Context, core.Tenant, core.UsageQuery) (core.UsageReport, error) {
	return core.UsageReport{Items: []core.UsageRow{{Key: "2026-01-31"}}}, nil
}

func (userBlobs) Open(_ context.Context, _ core.Tenant, id core.BlobID) (core.Blob, []byte, error) {
	return core.Blob{ID: id}, []byte("content"), nil
}

func (u *user) Files(_ context.Context, _, _ string, after core.BlobID, _ int) ([]core.Blob, error) {
	return []core.Blob{{ID: "blob", Name: u.name}}, nil
}

func (u *user) Elsewhere(context.Context, string, string, core.MessageID, int) ([]core.Message, error) {
	return []core.Message{{ID: "m", Content: "among others"}}, nil
}

func (u *user) Keys(context.Context, string) ([]core.APIKey, error) {
	return []core.APIKey{{Name: "web"}}, nil
}

func (u *user) service() *transfer.Service {
	return transfer.New(transfer.Options{
		Sessions: sessions{world: u.world}, Messages: messages{world: u.world}, Summaries: summaries{world: u.world}, Feed: feed{world: u.world}, Counter: words{},
		Users: transfer.UserStores{Sessions: userSessions{user: u}, Runs: userRuns{}, Memories: userMemories{}, Blobs: userBlobs{}, Usage: userUsage{}, More: u},
	})
}

// newUser returns a user with five messages.
func newUser(t *testing.T) *user {
	t.Helper()
	u := &user{world: newWorld(), name: "a note.txt"}
	u.session.Webhook = &core.Webhook{URL: "https://hooks.example/hush"}
	must.Get(u.take(t, core.ImportLines, strings.Repeat(`{"role":"user","content":"hello"}`+"\n", 5)))(t)
	return u
}

// An export of a user has everything, for an end user without what is the owner's; the name
// of a file leads nowhere.
func TestExportUser(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.name = `../..\etc:passwd`
	for _, owners := range []bool{true, false} {
		var out bytes.Buffer
		err := u.service().ExportUser(t.Context(), ann(), core.UserExport{Owner: "ann", User: "kim", OwnersView: owners}, &out)
		must.Do(t, err)
		z := must.Get(zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())))(t)
		var names []string
		var text strings.Builder
		for _, f := range z.File {
			names = append(names, f.Name)
			r := must.Get(f.Open())(t)
			must.Get(io.Copy(&text, r))(t)
		}
		want := []string{"export.json", "sessions/" + string(u.session.ID) + ".json", "runs/" + string(u.session.ID) + ".jsonl", "messages_elsewhere.jsonl", "memories.jsonl",
			"files/blob-.._.._etc_passwd", "files.jsonl", "usage.jsonl", "keys.jsonl", "counts.json"}
		if !owners {
			want = slices.DeleteFunc(want, func(name string) bool { return name == "keys.jsonl" })
		}
		compare.Equal(t, "files", want, names)
		compare.Equal(t, "webhooks in the export", owners, strings.Contains(text.String(), "hooks.example"))
		compare.Contains(t, "counts are wrong", `"sessions":1,"messages":5,"summaries":0,"runs":1,"messages_elsewhere":1,"memories":1,"files":1,"file_bytes":7`, text.String())
	}
}

// An export that broke off cannot be taken for a whole one.
func TestExportUserBreaksOff(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	u.fail, u.pages = errors.New("the database is away"), 1
	var out bytes.Buffer
	err := u.service().ExportUser(t.Context(), ann(), core.UserExport{Owner: "ann", User: "kim"}, &out)
	if _, unreadable := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len())); !errors.Is(err, u.fail) || unreadable == nil {
		t.Errorf("got %v, and an archive that can be read: %v", err, unreadable == nil)
	}
}
