package repositories_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

const quota = 1 << 20

// upload puts a text into ann's blobs, or into those of one of her users.
func (s *store) upload(t *testing.T, user, name, content string) core.Blob {
	t.Helper()
	b, err := s.blobs.Put(t.Context(), blobOf(user, name, content), core.BlobContent{Data: []byte(content)}, core.BlobRoom{Owner: quota})
	must.True(t, err == nil, "put %s: %v", name, err)
	return b
}

func blobOf(user, name, content string) core.Blob {
	sum := sha256.Sum256([]byte(content))
	return core.Blob{
		Owner: "ann", UserID: user, MediaType: "text/plain", Name: name, Size: int64(len(content)),
		SHA256: hex.EncodeToString(sum[:]), Tokens: 3,
	}
}

// sweep removes what nothing refers to, however young.
func (s *store) sweep(t *testing.T) core.SweptBlobs {
	t.Helper()
	return must.Get(s.blobs.Sweep(t.Context(), time.Now().Add(time.Hour)))(t)
}

// Contents are stored by hash: one for each owner, however often it is uploaded, under any
// name and by any of the owner's users.
func TestBlobsAreStoredOnce(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		first := s.upload(t, "", "a.txt", "content")
		same, other, carols := s.upload(t, "", "a.txt", "content"), s.upload(t, "", "b.txt", "content"), s.upload(t, "carol", "a.txt", "content")
		compare.Equal(t, "the same again", first, same)
		compare.True(t, other.ID != first.ID && other.Name == "b.txt" && carols.ID != first.ID, "got %+v and %+v, want blobs of their own", other, carols)
		theirs := blobOf("", "a.txt", "content")
		theirs.Owner = "bob"
		must.Get(s.blobs.Put(t.Context(), theirs, core.BlobContent{Data: []byte("content")}, core.BlobRoom{Owner: quota}))(t)
		compare.Equal(t, "ann's contents", 1, s.count(t, "SELECT COUNT(*) FROM blob_contents WHERE owner = 'ann'"))
		got, data, err := s.blobs.Open(t.Context(), ann(), other.ID)
		if diff := cmp.Diff(other, got); err != nil || diff != "" || string(data) != "content" {
			t.Errorf("open: %q, %v (-want +got):\n%s", data, err, diff)
		}
		swept := s.sweep(t)
		compare.Equal(t, "swept: want all four, and two contents", []any{4, 2 * int64(len("content"))}, []any{swept.Blobs, swept.Bytes})
	})
}

// A file stays while a message refers to it: in the log, and while the message is queued.
// It is removed with its session.
func TestReferredBlobsStay(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t)
		logged, queued, orphan := s.upload(t, "", "l.txt", "logged"), s.upload(t, "", "q.txt", "queued"), s.upload(t, "", "o.txt", "orphan")
		in := ask(session.ID, "look")
		in.Input.Parts = []core.Part{logged.Part(), logged.Part()}
		first := s.accept(t, in)
		in.Input.Parts = []core.Part{queued.Part()}
		s.accept(t, in)
		swept := s.sweep(t)
		compare.Equal(t, "swept: want the orphan", []any{1, int64(len("orphan"))}, []any{swept.Blobs, swept.Bytes})
		wantNotFound(t, "orphan", compare.ErrorOf(s.blobs.Get(t.Context(), ann(), orphan.ID)))
		s.finish(t, first.Run, "seen")
		must.Get(s.runs.Claim(t.Context(), session.ID, worker))(t)
		if list := s.log(t, session.ID); list[2].Parts[0].BlobID != queued.ID || s.sweep(t).Blobs != 0 {
			t.Errorf("got %+v, want the part of the queued message", list[2].Parts)
		}
		counted := s.purgeCounts(t, "", session.ID)
		compare.Equal(t, "to be removed: want the other two", []int64{2, 2, 2}, []int64{counted["blobs"].Removed, counted["blob_contents"].Removed, counted["blob_references"].Removed})
		must.Get(repositories.NewPurges(s.Gorm).Session(t.Context(), session.ID, true))(t)
		compare.Equal(t, "contents are left", 0, s.count(t, "SELECT COUNT(*) FROM blob_contents"))
	})
}

// A sweep leaves recent uploads; another upload of the same content makes it recent again.
func TestSweepLeavesTheYoung(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		old, again := s.upload(t, "", "old.txt", "old"), s.upload(t, "", "again.txt", "again")
		s.exec(t, "UPDATE blobs SET uploaded_at = '2000-01-01 00:00:00+00:00'")
		s.upload(t, "", "again.txt", "again")
		swept, err := s.blobs.Sweep(t.Context(), time.Now().Add(-24*time.Hour))
		compare.True(t, err == nil && swept.Blobs == 1, "swept %+v and %v, want one", swept, err)
		wantNotFound(t, "the old one", compare.ErrorOf(s.blobs.Get(t.Context(), ann(), old.ID)))
		compare.Error(t, "uploaded again", nil, compare.ErrorOf(s.blobs.Get(t.Context(), ann(), again.ID)))
	})
}

// The owner's total holds for concurrent uploads, and for many names of one content.
func TestBlobQuota(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		const size, room = 100 << 10, 3*(100<<10) + 3*1024
		var taken atomic.Int32
		race(racers, func(i int) {
			content := strings.Repeat(string(rune('a'+i)), size)
			if _, err := s.blobs.Put(t.Context(), blobOf("", "x.txt", content), core.BlobContent{Data: []byte(content)}, core.BlobRoom{Owner: room}); err != nil {
				wantError(t, "over the quota", err, core.ErrTooLarge)
				return
			}
			taken.Add(1)
		})
		compare.Equal(t, "were taken", 3, taken.Load())
		_, err := s.blobs.Put(t.Context(), blobOf("", "another name", "aaa"), core.BlobContent{Data: []byte("aaa")}, core.BlobRoom{Owner: room})
		wantError(t, "another entry", err, core.ErrTooLarge)
	})
}

// A user has a separate limit within the owner's; files of others do not count, and the
// same file again needs no room.
func TestBlobRoomOfUsers(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		room := core.BlobRoom{Owner: quota, User: 3000}
		put := func(user, content string) error {
			_, err := s.blobs.Put(t.Context(), blobOf(user, content[:1], content), core.BlobContent{Data: []byte(content)}, room)
			return err
		}
		for _, user := range []string{"kim", "eve"} {
			a, b := strings.Repeat("a", 1500), strings.Repeat("b", 1500)
			compare.Error(t, user+": want the first file taken", nil, put(user, a))
			wantError(t, user+": a second file", put(user, b), core.ErrTooLarge)
			compare.Error(t, user+": want the first file taken again", nil, put(user, a))
		}
	})
}

// Deleting a message removes its files, unless another message has them, such as its copy
// in a fork.
func TestDeletedMessagesDropTheirBlobs(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		session := s.session(t).ID
		shared, alone := s.upload(t, "", "s.txt", "shared"), s.upload(t, "", "a.txt", "alone")
		for i, parts := range [][]core.Part{{shared.Part(), alone.Part()}, {shared.Part()}} {
			in := ask(session, "look")
			in.Input.Parts = parts
			s.finish(t, s.accept(t, in).Run, "answer")
			if i == 1 {
				fork := must.Get(repositories.NewBranches(s.Gorm).Fork(t.Context(), ann(), core.ForkSession{SessionID: session}))(t)
				compare.Equal(t, "references of the fork", 3, s.count(t, "SELECT COUNT(*) FROM blob_references WHERE session_id = ?", fork.ID))
				s.exec(t, "DELETE FROM blob_references WHERE session_id = ? AND blob_id = ?", fork.ID, alone.ID)
			}
		}
		log := s.log(t, session)
		for i, delete := range []core.MessageID{log[0].ID, log[2].ID} {
			must.Get(repositories.NewBranches(s.Gorm).Delete(t.Context(), ann(), session, delete))(t)
			compare.Equal(t, fmt.Sprintf("after deletion %d: contents are left: want the fork's", i), 1, s.count(t, "SELECT COUNT(*) FROM blob_contents"))
		}
	})
}

// The text of a document is stored once for each content, counted as the owner's, and
// goes with the content. A file that was stored before documents were read gets its text
// when it is uploaded again.
func TestDocumentTexts(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		old := s.upload(t, "", "a.pdf", "content")
		read := blobOf("", "a.pdf", "content")
		read.Extracted, read.Pages, read.Blank, read.Tokens = true, 7, 2, 5
		put := func(b core.Blob, text string) core.Blob {
			t.Helper()
			b = must.Get(s.blobs.Put(t.Context(), b, core.BlobContent{Data: []byte("content"), Text: core.DocumentText{Text: text, Pages: 7, Blank: 2}}, core.BlobRoom{Owner: quota}))(t)
			return b
		}
		again := put(read, "its text")
		compare.True(t, !old.Extracted && again.ID == old.ID && again.Extracted && again.Pages == 7 && again.Blank == 2 && again.Tokens == 5, "got %+v, then %+v, want it read", old, again)
		read.Name = "b.pdf"
		other := put(read, "another text, which is not stored")
		got := must.Get(s.blobs.Texts(t.Context(), ann(), []core.BlobID{again.ID, other.ID}))(t)
		compare.True(t, string(got[again.ID]) == "its text" && string(got[other.ID]) == "its text", "got %q", got)
		text, ok, err := s.blobs.Text(t.Context(), "ann", read.SHA256)
		if want := (core.DocumentText{Text: "its text", Pages: 7, Blank: 2}); err != nil || !ok || text != want {
			t.Errorf("got %+v, %v, %v, want %+v", text, ok, err, want)
		}
		if _, ok, err := s.blobs.Text(t.Context(), "bob", read.SHA256); ok || err != nil {
			t.Errorf("bob: got %v, %v, want none", ok, err)
		}
		large := blobOf("", "large.pdf", "large")
		large.Extracted = true
		_, err = s.blobs.Put(t.Context(), large, core.BlobContent{Data: []byte("large"), Text: core.DocumentText{Text: strings.Repeat("x", quota)}}, core.BlobRoom{Owner: quota})
		wantError(t, "over the quota", err, core.ErrTooLarge)
		compare.Equal(t, "swept: want both and the text", []int{2, 0}, []int{s.sweep(t).Blobs, s.count(t, "SELECT COUNT(*) FROM blob_texts")})
	})
}
