package e2e_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	operations "bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/jwttest"
	"bobbin/tests/must"
)

// archive is an export of a user that was read.
type archive struct {
	t     testing.TB
	files map[string][]byte
	bytes int
}

// exportOf exports a user and reads the archive.
func exportOf(t testing.TB, c *client.Client, user string) archive {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, client.Download(t.Context(), c, operations.ExportUser, operations.UserExport{UserID: user}, &out))
	return readArchive(t, out.Bytes())
}

func readArchive(t testing.TB, data []byte) archive {
	t.Helper()
	z := must.Get(zip.NewReader(bytes.NewReader(data), int64(len(data))))(t)
	a := archive{t: t, files: map[string][]byte{}, bytes: len(data)}
	for _, f := range z.File {
		r := must.Get(f.Open())(t)
		a.files[f.Name] = must.Get(io.ReadAll(r))(t)
		must.Do(t, r.Close())
	}
	return a
}

// in returns the names of the files in a folder of the archive.
func (a archive) in(folder string) []string {
	var names []string
	for name := range a.files {
		if strings.HasPrefix(name, folder+"/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// decoded reads a file of the archive.
func decoded[T any](a archive, name string) T {
	a.t.Helper()
	var v T
	if err := json.Unmarshal(a.files[name], &v); err != nil {
		a.t.Fatalf("%s: %v", name, err)
	}
	return v
}

// saidLines returns a history of n messages as lines.
func saidLines(n int, text string) *bytes.Reader {
	var b bytes.Buffer
	for i := range n {
		role := []string{"user", "assistant"}[i%2]
		fmt.Fprintf(&b, "{\"role\":%q,\"content\":\"%s %d\"}\n", role, text, i)
	}
	return bytes.NewReader(b.Bytes())
}

// fillMore gives the user 1,000 messages more, memories, files and webhooks.
func (p *purging) fillMore(messages int) {
	t := p.T
	t.Helper()
	long := must.Get(client.Call(t.Context(), p.north, operations.CreateSession, operations.NewSession{UserID: p.user, Title: "long", Webhook: &operations.NewWebhook{URL: "https://hooks.example/T0"}}))(t)
	must.Get(p.north.ImportMessages(t.Context(), core.ImportMessages{SessionID: long.ID, Body: saidLines(messages, p.Marks.Of("imported message")), Format: core.ImportLines}))(t)
	must.Get(client.Call(t.Context(), p.north, operations.UpdateSession, operations.SessionPatch{InSession: operations.InSession{SessionID: long.ID}, SessionPatch: core.SessionPatch{Archived: new(true)}}))(t)
	for i := range 20 {
		must.Get(client.Call(t.Context(), p.north, operations.CreateMemory, operations.NewMemory{UserID: p.user, Content: fmt.Sprintf("fact %d %s", i, p.Marks.Of("many memories"))}))(t)
		must.Get(p.north.UploadBlob(t.Context(), core.Upload{User: p.user, Name: "note.txt", Data: []byte(fmt.Sprintf("note %d %s", i, p.Marks.Of("many files")))}))(t)
	}
}

// TestRights: a user with 1,000 messages, memories, files and webhooks is exported and
// deleted over the API; no byte of the user is left in the files of the database.
func TestRights(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		p := newPurging(t, url)
		before := p.Marks.Find(t, p.Folders)
		for _, place := range p.Marks.Places {
			if before[place] == "" && !strings.HasPrefix(place, "word of") {
				t.Errorf("the mark of %q is in no file before the deletion: the search cannot find it", place)
			}
		}
		p.fillMore(1000)
		_, secret := createKey(p.Bobbin, ops.NewKey{Name: "rights", Owner: "north", Rights: core.CanDelete | core.CanExport})
		rights := p.NewClient(secret)

		a := exportOf(t, rights, p.user)
		counts := decoded[core.UserExportCounts](a, "counts.json")
		if counts.Sessions != 2 || counts.Messages < 1000 || counts.Memories != 21 || counts.Files < 21 || counts.MessagesElsewhere != 3 || counts.Keys != 1 || counts.Runs == 0 {
			t.Errorf("exported: %+v", counts)
		}
		var size int64
		for _, name := range a.in("files") {
			size += int64(len(a.files[name]))
		}
		compare.Equal(t, "files of one name, bytes of all", []int64{int64(counts.Files), counts.FileBytes}, []int64{int64(len(a.in("files"))), size})
		if all := fmt.Sprintf("%s", a.files); strings.Contains(all, bobsWord) {
			t.Error("the export has something of another user's own sessions")
		}
		p.checkExported(a)

		others := p.rest()
		d := must.Get(apptest.AwaitDeletion(t.Context(), rights, must.Get(client.Call(t.Context(), rights, operations.CreateDeletion, operations.NewDeletion{UserID: p.user}))(t).ID))(t)
		if d.Report == nil || d.Report.Left() != 0 || d.RowsLeft != 0 || d.RowsTotal < 1000 || len(d.Report.Sessions) != 2 {
			t.Errorf("deletion: %+v", d)
		}
		must.Get(client.Call(t.Context(), p.NewClient(p.App.Token()), operations.PurgeSessions, core.PurgeSessions{PurgeOptions: core.PurgeOptions{Compact: true}}))(t)
		p.checkGone(t, others)
	})
}

// checkExported looks for what is planted.
func (p *purging) checkExported(a archive) {
	p.T.Helper()
	var all bytes.Buffer
	for name, data := range a.files {
		fmt.Fprintf(&all, "%s\n%s\n", name, data)
	}
	for _, place := range []string{
		"title", "title in an event", "instructions", "session metadata", "message", "message metadata", "long message", "memory", "memory metadata", "many memories",
		"blob", "blob name", "many files", "summary", "imported message", "message in a shared session", "run error",
	} {
		if place != "title" && !bytes.Contains(all.Bytes(), []byte(p.Marks.Of(place))) { // another title followed
			p.T.Errorf("%q is not in the export", place)
		}
	}
	if !bytes.Contains(all.Bytes(), []byte("https://hooks.example")) {
		p.T.Error("the webhook is not in the export")
	}
}

// An end user deletes and exports what is their own and nothing else; scopes that the
// token does not have are refused.
func TestUsersOwnData(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		s := jwttest.NewSigner(t, "k", "EdDSA")
		h := apptest.New(t, url, withTokens(jwttest.Serve(t, s)), func(c *config.Config) {
			c.Auth.JWT.Scopes = []string{"read", "write", "delete", "export"}
			c.Auth.JWT.ScopeClaim = "scope"
		})
		as := func(user, scopes string) *client.Client {
			return h.NewClient(s.Token(t, jwttest.Claims(user, map[string]any{"scope": scopes}), nil))
		}
		kim, eve, shop := as("kim", "read write delete export"), as("eve", "read write delete export"), h.NewClient("configured-secret")
		mine := apptest.NewSession(t, kim, operations.NewSession{})
		apptest.SendMessage(t, kim, core.SendMessage{SessionID: mine, Content: "a secret of kim's"})
		theirs := apptest.NewSession(t, eve, operations.NewSession{})
		must.Get(client.Call(t.Context(), shop, operations.UpdateSession, operations.SessionPatch{InSession: operations.InSession{SessionID: mine}, Webhook: &operations.NewWebhook{URL: "https://hooks.example/hushhush"}}))(t)

		_, err := client.Call(t.Context(), as("kim", "read write"), operations.CreateDeletion, operations.NewDeletion{SessionID: mine})
		wantRefused(t, err, http.StatusForbidden, "missing_scope")
		_, err = client.Call(t.Context(), shop, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"})
		wantRefused(t, err, http.StatusForbidden, "missing_scope")
		wantRefused(t, client.Download(t.Context(), as("kim", "read write delete"), operations.ExportUser, operations.UserExport{UserID: ""}, io.Discard), http.StatusForbidden, "missing_scope")
		_, err = client.Call(t.Context(), eve, operations.CreateDeletion, operations.NewDeletion{SessionID: mine})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		_, err = client.Call(t.Context(), eve, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"})
		wantRefused(t, err, http.StatusForbidden, "forbidden")
		wantRefused(t, client.Download(t.Context(), eve, operations.ExportUser, operations.UserExport{UserID: "kim"}, io.Discard), http.StatusForbidden, "forbidden")

		a := exportOf(t, kim, "")
		for name, data := range a.files {
			if bytes.Contains(data, []byte("hushhush")) || name == "keys.jsonl" {
				t.Errorf("%s shows an end user what is the owner's: %.300s", name, data)
			}
		}
		if names := a.in("sessions"); len(names) != 1 || !bytes.Contains(a.files[names[0]], []byte("a secret of kim's")) {
			t.Errorf("exported sessions %v, want kim's", names)
		}

		first := must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{SessionID: mine}))(t)
		if page := must.Get(client.Call(t.Context(), kim, operations.ListSessions, core.SessionQuery{}))(t); len(page.Items) != 0 {
			t.Errorf("%d sessions are listed that are being deleted", len(page.Items))
		}
		_, err = client.Call(t.Context(), eve, operations.GetDeletion, operations.InDeletion{DeletionID: first.ID})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		done := must.Get(apptest.AwaitDeletion(t.Context(), kim, first.ID))(t)
		_, err = client.Call(t.Context(), kim, operations.GetSession, operations.InSession{SessionID: mine})
		wantRefused(t, err, http.StatusNotFound, "not_found")
		if again := must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{SessionID: mine}))(t); again.ID != first.ID || again.Status != core.DeletionSucceeded || done.Report.Left() != 0 {
			t.Errorf("a session that is gone: got %+v, want the deletion %s and its report", again, first.ID)
		}
		must.Get(apptest.AwaitDeletion(t.Context(), kim, must.Get(client.Call(t.Context(), kim, operations.CreateDeletion, operations.NewDeletion{UserID: "kim"}))(t).ID))(t)
		session(t, eve, theirs)
		var users int64
		if err := dbtest.Open(t, url).Gorm.Raw("SELECT COUNT(*) FROM deletions WHERE user_id <> ''").Row().Scan(&users); err != nil || users != 0 {
			t.Errorf("%d deletions that are done name a user, %v", users, err)
		}
	})
}
