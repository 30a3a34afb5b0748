package blobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/blobs"
	"bobbin/app/core"
	"bobbin/app/core/attach"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// memory is a store that keeps nothing but what was asked of it last.
type memory struct {
	core.BlobStore

	blob core.Blob
	text core.DocumentText
	room core.BlobRoom
	fail error

	mu     sync.Mutex
	sweeps []time.Time // guarded by mu
}

func (m *memory) Put(_ context.Context, b core.Blob, content core.BlobContent, room core.BlobRoom) (core.Blob, error) {
	b.ID = "b"
	m.blob, m.text, m.room = b, content.Text, room
	return b, m.fail
}

func (m *memory) Text(context.Context, string, string) (core.DocumentText, bool, error) {
	return m.text, m.text.Text != "", nil
}

// letters reads documents by their bytes.
type letters struct{ reads int }

func (l *letters) Read(_ context.Context, _ string, data []byte) (core.DocumentText, bool, error) {
	l.reads++
	return core.DocumentText{Text: string(data[1:]), Pages: 7, Blank: 2}, true, nil
}

func (m *memory) Get(_ context.Context, _ core.Tenant, id core.BlobID) (core.Blob, error) {
	if id != "b" {
		return core.Blob{}, core.Errorf(core.ErrNotFound, "blob %s does not exist", id)
	}
	return m.blob, nil
}

func (m *memory) Find(ctx context.Context, id core.BlobID) (core.Blob, error) {
	return m.Get(ctx, core.Tenant{}, id)
}

func (m *memory) SigningKey(context.Context) ([]byte, error) { return []byte("a key"), m.fail }

func (m *memory) Sweep(_ context.Context, before time.Time) (core.SweptBlobs, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sweeps = append(m.sweeps, before)
	return core.SweptBlobs{Blobs: 1}, m.fail
}

// sessions has the session "s", of the user carol.
type sessions struct{ core.SessionStore }

func (sessions) Get(_ context.Context, _ core.Tenant, id core.SessionID) (core.Session, error) {
	if id != "s" {
		return core.Session{}, core.Errorf(core.ErrNotFound, "session %s does not exist", id)
	}
	return core.Session{ID: id, UserID: "carol"}, nil
}

type words struct{}

func (words) Text(s string) int { return len(strings.Fields(s)) }

func service(m *memory) *blobs.Service {
	return blobs.New(blobs.Options{Store: m, Sessions: sessions{}, Counter: words{}, ReadText: (&letters{}).Read, Logger: slog.New(slog.DiscardHandler), Limits: blobs.Limits{
		Bytes: 100, PerMessage: 2, Total: 1000, User: 500, Types: []string{"text/*"},
	}})
}

func TestUpload(t *testing.T) {
	t.Parallel()
	ann := core.Tenant{Owner: "ann"}
	for name, c := range map[string]struct {
		scope core.Tenant
		in    core.Upload
		want  core.Blob
		kind  error
	}{
		"text": {ann, core.Upload{Name: "../a.txt", Data: []byte("two words")}, core.Blob{Owner: "ann", Name: "a.txt", MediaType: "text/plain", Size: 9, Tokens: 2}, nil},
		"of the session's user": {ann, core.Upload{Name: "a.csv", Data: []byte("a"), SessionID: "s"},
			core.Blob{Owner: "ann", UserID: "carol", SessionID: "s", Name: "a.csv", MediaType: "text/csv", Size: 1, Tokens: 1}, nil},
		"of the caller's user": {core.Tenant{Owner: "ann", User: "dan"}, core.Upload{Name: "a", Data: []byte("a")},
			core.Blob{Owner: "ann", UserID: "dan", Name: "a", MediaType: "text/plain", Size: 1, Tokens: 1}, nil},
		"of another user": {core.Tenant{Owner: "ann", User: "dan"}, core.Upload{Name: "a", Data: []byte("a"), User: "carol"}, core.Blob{}, core.ErrForbidden},
		"a wrong user":    {ann, core.Upload{Name: "a", Data: []byte("a"), User: "a\x00"}, core.Blob{}, core.ErrInvalid},
		"no such session": {ann, core.Upload{Name: "a", Data: []byte("a"), SessionID: "x"}, core.Blob{}, core.ErrNotFound},
		"too large":       {ann, core.Upload{Name: "a", Data: make([]byte, 101)}, core.Blob{}, core.ErrTooLarge},
		"not taken":       {ann, core.Upload{Name: "a", Data: []byte("%PDF-1.4")}, core.Blob{}, core.ErrInvalid},
		"empty":           {ann, core.Upload{Name: "a"}, core.Blob{}, core.ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &memory{}
			got, err := service(m).Upload(t.Context(), c.scope, c.in)
			if c.kind != nil {
				compare.True(t, errors.Is(err, c.kind) && m.room == (core.BlobRoom{}), "got %v, stored %+v; want %v and nothing stored", err, m.blob, c.kind)
				return
			}
			room := core.BlobRoom{Owner: 1000}
			if c.scope.User != "" {
				room.User = 500
			}
			hash := got.SHA256
			got.ID, got.SHA256 = "", ""
			if err != nil || got != c.want || len(hash) != 64 || m.room != room {
				t.Errorf("got %+v and %v within %+v, want %+v within %+v", got, err, m.room, c.want, room)
			}
		})
	}
}

// The text of a document is read at its first upload, and stored with it.
func TestUploadReadsDocuments(t *testing.T) {
	t.Parallel()
	m, l := &memory{}, &letters{}
	s := service(m)
	s.ReadText, s.Limits.Types = l.Read, []string{"application/pdf"}
	for range 2 {
		b := must.Get(s.Upload(t.Context(), core.Tenant{Owner: "ann"}, core.Upload{Name: "a", Data: []byte("%PDF-1.4 two words")}))(t)
		compare.Equal(t, "extracted, pages, blank ones, tokens, text", []any{true, 7, 2, 3, "PDF-1.4 two words"}, []any{b.Extracted, b.Pages, b.Blank, b.Tokens, m.text.Text})
	}
	compare.Equal(t, "how often the document was read", 1, l.reads)
}

// A rejected upload gets advice.
func TestAdvice(t *testing.T) {
	t.Parallel()
	for data, words := range map[string]string{
		"PK\x03\x04": "it is application/zip; unpack it", "BM     ": "it is image/bmp; save it as PNG or JPEG", "\x00\x01\x02": "save it as PDF",
		"OggS\x00": "application/ogg; accepted types are text/*", "RIFF    WAVE": "upload a transcript",
	} {
		_, err := service(&memory{}).Upload(t.Context(), core.Tenant{Owner: "ann"}, core.Upload{Name: "a", Data: []byte(data)})
		compare.True(t, err != nil && strings.Contains(err.Error(), words), "%q: got %v, want %q", data, err, words)
	}
}

func TestAttach(t *testing.T) {
	t.Parallel()
	m := &memory{blob: core.Blob{ID: "b", MediaType: "text/plain", Name: "a.txt", Size: 9, Tokens: 100}}
	s := service(m)
	for name, c := range map[string]struct {
		asked []core.Part
		kind  error
		words string
	}{
		"too many":       {make([]core.Part, 3), core.ErrInvalid, "parts has 3 files"},
		"no blob":        {[]core.Part{{Type: "file"}}, core.ErrInvalid, "parts[0].blob_id is missing"},
		"another's blob": {[]core.Part{{BlobID: "b"}, {BlobID: "c"}}, core.ErrNotFound, "blob c"},
		"text":           {[]core.Part{{Type: "text", BlobID: "b"}}, core.ErrInvalid, "must be image or file"},
		"no image":       {[]core.Part{{Type: "image", BlobID: "b"}}, core.ErrInvalid, "the blob is text/plain"},
	} {
		if _, err := s.Attach(t.Context(), core.Tenant{Owner: "ann"}, c.asked); !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: got %v, want %v with %q", name, err, c.kind, c.words)
		}
	}
	got, err := s.Attach(t.Context(), core.Tenant{Owner: "ann"}, []core.Part{{BlobID: "b", Name: "x/new.txt", Text: "never kept", Tokens: 1}})
	want := core.Part{Type: "file", BlobID: "b", MediaType: "text/plain", Name: "new.txt", Size: 9}
	want.Tokens = attach.Tokens(want, 100, words{}.Text)
	compare.True(t, err == nil && len(got) == 1 && got[0] == want && want.Tokens >= 100, "got %+v and %v, want %+v", got, err, want)
}

// What no message came to refer to goes after a day, also when a sweep failed once.
func TestRunSweeps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := &memory{fail: errors.New("down")}
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		begin := time.Now()
		must.Do(t, service(m).Run(ctx))
		compare.True(t, len(m.sweeps) == 3 && m.sweeps[2].Equal(begin.Add(2*time.Hour-24*time.Hour)), "swept before %v, want three times, an hour between, a day back", m.sweeps)
	})
}

// A link ends at its time, by the second.
func TestLinksExpire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := service(&memory{})
		link := must.Get(s.Link(t.Context(), core.Tenant{Owner: "ann"}, "b", time.Minute))(t)
		address := must.Get(url.Parse(link.URL))(t)
		expires, err := strconv.ParseInt(address.Query().Get("expires"), 10, 64)
		must.True(t, err == nil && time.Unix(expires, 0).Equal(link.ExpiresAt), "got %s, %v", link.URL, err)
		signature := address.Query().Get("signature")
		compare.Error(t, "a new link", nil, compare.ErrorOf(s.Follow(t.Context(), "b", expires, signature)))
		time.Sleep(time.Minute)
		var shown *core.Error
		if _, err := s.Follow(t.Context(), "b", expires, signature); !errors.As(err, &shown) || shown.Code != core.CodeLinkExpired {
			t.Errorf("an old link: got %v, want it expired", err)
		}
		if _, err := s.Follow(t.Context(), "c", expires, signature); !errors.As(err, &shown) || shown.Code != "" {
			t.Errorf("another file: got %v, want nothing told of it", err)
		}
		for _, lifetime := range []time.Duration{-1, time.Hour + time.Second} {
			compare.Error(t, fmt.Sprintf("%s: want it refused", lifetime), core.ErrInvalid, compare.ErrorOf(s.Link(t.Context(), core.Tenant{Owner: "ann"}, "b", lifetime)))
		}
	})
}
