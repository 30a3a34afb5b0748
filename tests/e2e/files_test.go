package e2e_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// follow gets an address as a browser does, without a key.
func followPath(h *apptest.Bobbin, path string) (status int, header http.Header, body string) {
	h.T.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, h.URL+path, http.NoBody)
	if err != nil {
		h.T.Fatal(err)
	}
	response := must.Get(h.HTTP.Do(r))(h.T)
	defer response.Body.Close()
	data := must.Get(io.ReadAll(response.Body))(h.T)
	return response.StatusCode, response.Header, string(data)
}

// Files are listed, described, shown to browsers by links that end, and deleted.
func TestManageFiles(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, dbURL string) {
		p := apptest.NewProvider(t, provider.Options{Window: 16_384, Record: true})
		h := apptest.New(t, dbURL, apptest.WithModel("sees", 16_384, 2048, p), seeing(true), func(c *config.Config) {
			c.Auth.Keys = []config.APIKey{
				{Name: "ann", Secret: config.NewSecret("secret-of-ann-1234")}, {Name: "bob", Secret: config.NewSecret("secret-of-bob-1234")},
			}
		})
		ann, bob, ctx := h.NewClient("secret-of-ann-1234"), h.NewClient("secret-of-bob-1234"), t.Context()
		id := apptest.NewSession(t, ann, ops.NewSession{})
		cat := upload(t, ann, "cat.png", picture(t, 64, 48))
		apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "look", Parts: []core.Part{cat}})
		loose := upload(t, ann, "loose.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`))

		list := func(q core.BlobQuery) []core.BlobID {
			var ids []core.BlobID
			for {
				page := apptest.Must(client.Call(ctx, ann, ops.ListFiles, q))(t)
				for _, b := range page.Items {
					ids = append(ids, b.ID)
				}
				if page.NextCursor == nil {
					return ids
				}
				q.Cursor = *page.NextCursor
			}
		}
		if got := list(core.BlobQuery{PageQuery: core.PageQuery{Limit: 1}}); !slices.Equal(got, []core.BlobID{loose.BlobID, cat.BlobID}) {
			t.Errorf("all: got %v", got)
		}
		if got := list(core.BlobQuery{SessionID: id}); !slices.Equal(got, []core.BlobID{cat.BlobID}) {
			t.Errorf("of the session: got %v", got)
		}
		if got := list(core.BlobQuery{UserID: "nobody"}); len(got) != 0 {
			t.Errorf("of nobody: got %v", got)
		}
		if b, err := client.Call(ctx, ann, ops.DescribeFile, ops.InBlob{BlobID: cat.BlobID}); err != nil || b.Name != "cat.png" || b.Width != 64 {
			t.Errorf("got %+v, %v", b, err)
		}
		errorOf := func(_ any, err error) error { return err }
		for what, err := range map[string]error{
			"describe": errorOf(client.Call(ctx, bob, ops.DescribeFile, ops.InBlob{BlobID: cat.BlobID})),
			"link":     errorOf(client.Call(ctx, bob, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: cat.BlobID}})),
			"delete":   errorOf(client.Call(ctx, bob, ops.DeleteFile, ops.InBlob{BlobID: cat.BlobID})),
			"session":  errorOf(client.Call(ctx, bob, ops.ListFiles, core.BlobQuery{SessionID: id})),
		} {
			if !errors.Is(err, core.ErrNotFound) {
				t.Errorf("%s as another owner: got %v, want not found", what, err)
			}
		}

		link, err := client.Call(ctx, ann, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: cat.BlobID}})
		if left := time.Until(link.ExpiresAt); err != nil || left < 9*time.Minute || left > 10*time.Minute {
			t.Fatalf("got %+v, %v", link, err)
		}
		status, header, body := followPath(h, link.URL)
		if status != 200 || header.Get("Content-Type") != "image/png" || !strings.HasPrefix(header.Get("Content-Disposition"), "inline") ||
			header.Get("Cross-Origin-Resource-Policy") != "cross-origin" || header.Get("X-Content-Type-Options") != "nosniff" || len(body) != int(cat.Size) {
			t.Errorf("got %d with %v", status, header)
		}
		svg := apptest.Must(client.Call(ctx, ann, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: loose.BlobID}, ExpiresIn: 3600}))(t)
		if _, header, _ := followPath(h, svg.URL); !strings.HasPrefix(header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("a drawing that may hold a program: got %v", header)
		}
		if _, err := client.Call(ctx, ann, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: cat.BlobID}, ExpiresIn: 3601}); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("a link for too long: got %v", err)
		}
		later := apptest.Must(url.Parse(link.URL))(t)
		query := later.Query()
		query.Set("expires", "9999999999")
		for what, path := range map[string]string{
			"another time": later.Path + "?" + query.Encode(), "another file": strings.Replace(link.URL, string(cat.BlobID), string(loose.BlobID), 1),
			"unsigned": later.Path, "altered": link.URL + "x",
		} {
			if status, _, body := followPath(h, path); status != 404 || !strings.Contains(body, "request one with POST") {
				t.Errorf("%s: got %d, %s", what, status, body)
			}
		}

		h.Restart() // the links go on
		if status, _, _ := followPath(h, link.URL); status != 200 {
			t.Errorf("after a restart: got %d", status)
		}
		ann = h.NewClient("secret-of-ann-1234")
		must.Get(client.Call(ctx, ann, ops.DeleteFile, ops.InBlob{BlobID: cat.BlobID}))(t)
		if status, _, body := followPath(h, link.URL); status != 410 || !strings.Contains(body, "file_deleted") {
			t.Errorf("the link of a deleted file: got %d, %s", status, body)
		}
		if _, err := readBlob(ctx, ann, cat.BlobID); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("a deleted file: got %v", err)
		}
		if got := apptest.ListMessages(t, ann, id)[0].Parts[0]; got.Name != "cat.png" {
			t.Errorf("got the part %+v, want it kept", got)
		}
		apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "again"})
		prompts := p.Prompts()
		if last := prompts[len(prompts)-1][0]; !strings.Contains(last, `[image "cat.png"`) || !strings.Contains(last, "it is not stored any more]") {
			t.Errorf("got the prompt %q", last)
		}
	})
}
