package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/documents"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

// followPath gets an address as a browser and a load balancer do, without a key.
func followPath(h *apptest.Bobbin, path string) (status int, header http.Header, body string) {
	h.T.Helper()
	r := must.Get(http.NewRequestWithContext(context.Background(), http.MethodGet, h.URL+path, http.NoBody))(h.T)
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
			c.Auth.Keys = []config.APIKey{{Name: "ann", Secret: config.NewSecret("secret-of-ann-1234")}}
		})
		ann, ctx := h.NewClient("secret-of-ann-1234"), t.Context()
		id := apptest.NewSession(t, ann, ops.NewSession{})
		cat := upload(t, ann, "cat.png", picture(t, 64, 48))
		apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "look", Parts: []core.Part{cat}})
		loose := upload(t, ann, "loose.svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`))

		list := func(q core.BlobQuery) (ids []core.BlobID) {
			for _, b := range must.Get(client.Call(ctx, ann, ops.ListFiles, q))(t).Items {
				ids = append(ids, b.ID)
			}
			return ids
		}
		compare.Equal(t, "all", []core.BlobID{loose.BlobID, cat.BlobID}, list(core.BlobQuery{}))
		compare.Equal(t, "of the session", []core.BlobID{cat.BlobID}, list(core.BlobQuery{SessionID: id}))
		compare.Equal(t, "of nobody", 0, len(list(core.BlobQuery{UserID: "nobody"})))
		if b, err := client.Call(ctx, ann, ops.DescribeFile, ops.InBlob{BlobID: cat.BlobID}); err != nil || b.Name != "cat.png" || b.Width != 64 {
			t.Errorf("got %+v, %v", b, err)
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
		svg := must.Get(client.Call(ctx, ann, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: loose.BlobID}, ExpiresIn: 3600}))(t)
		if _, header, _ := followPath(h, svg.URL); !strings.HasPrefix(header.Get("Content-Type"), "text/plain") || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") ||
			!strings.Contains(header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("a drawing that may hold a program: got %v", header)
		}
		compare.Error(t, "a link for too long", core.ErrInvalid, compare.ErrorOf(client.Call(ctx, ann, ops.LinkFile, ops.NewBlobLink{InBlob: ops.InBlob{BlobID: cat.BlobID}, ExpiresIn: 3601})))
		later := must.Get(url.Parse(link.URL))(t)
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
		compare.Error(t, "a deleted file", core.ErrNotFound, compare.ErrorOf(readBlob(ctx, ann, cat.BlobID)))
		compare.Equal(t, "the part that is kept", "cat.png", apptest.ListMessages(t, ann, id)[0].Parts[0].Name)
		apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "again"})
		prompts := p.Prompts()
		if last := prompts[len(prompts)-1][0]; !strings.Contains(last, `[image "cat.png"`) || !strings.Contains(last, "it is not stored any more]") {
			t.Errorf("got the prompt %q", last)
		}
	})
}

// picture is a PNG of that size.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	var out bytes.Buffer
	must.Do(t, png.Encode(&out, image.NewGray(image.Rect(0, 0, width, height))))
	return out.Bytes()
}

// upload stores a file and returns the part that a message refers to it by.
func upload(t testing.TB, c *client.Client, name string, data []byte) core.Part {
	t.Helper()
	b, err := c.UploadBlob(t.Context(), core.Upload{Name: name, Data: data})
	if err != nil {
		t.Fatalf("upload %s: %v", name, err)
	}
	return b.Part()
}

// readBlob returns the content of a file.
func readBlob(ctx context.Context, c *client.Client, id core.BlobID) ([]byte, error) {
	var data bytes.Buffer
	err := client.Download(ctx, c, ops.GetFile, ops.InBlob{BlobID: id}, &data)
	return data.Bytes(), err
}

// seeing makes the first model one that sees images, or none that does.
func seeing(images bool) apptest.Setting {
	return func(c *config.Config) { c.Models[0].Images = &images }
}

// An image goes to a model that takes it, byte for byte, again in
// later prompts, and is described to one that does not; a text file goes as text.
func TestFilesInMessages(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Window: 16_384, Record: true})
		h := apptest.New(t, url, apptest.WithModel("sees", 16_384, 2048, p), apptest.WithModel("blind", 16_384, 2048, p), seeing(true))
		id := apptest.NewSession(t, h.Client, ops.NewSession{})
		cat := picture(t, 640, 480)
		parts := []core.Part{
			upload(t, h.Client, "../../cat.png", cat), upload(t, h.Client, "data.csv", []byte("pump,pressure\n7,3.5\n")),
			upload(t, h.Client, "paper.pdf", documents.PDF("Pump seven leaks.", "")),
		}
		asked := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "look", Parts: parts}).Question
		got := asked.Parts[0]
		if got.Name != "cat.png" || got.MediaType != "image/png" || got.Width != 640 || got.Height != 480 || got.Size != int64(len(cat)) || got.Tokens == 0 {
			t.Errorf("got the part %+v, want all that is known of the image", got)
		}
		if sum := got.Tokens + asked.Parts[1].Tokens + asked.Parts[2].Tokens; asked.TokenCount <= sum {
			t.Errorf("got %d tokens for the message and %d for its parts", asked.TokenCount, sum)
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and again"})
		want := "data:image/png;base64," + base64.StdEncoding.EncodeToString(cat)
		for i, images := range p.Images() {
			if len(images) != 1 || images[0] != want {
				t.Errorf("request %d: got %d images, want the one", i, len(images))
			}
		}
		prompts := p.Prompts()
		compare.Equal(t, "the first message, sent again", prompts[0][0], prompts[1][0])
		for _, words := range []string{"look\n[file \"data.csv\", text/csv, 20 bytes", "<attached_file>\npump,pressure\n7,3.5\n\n</attached_file>", "[file \"paper.pdf\", application/pdf, 2 pages, ", "1 of 2 pages have no text", "[page 1]\nPump seven leaks.\n</attached_file>"} {
			compare.Contains(t, "prompt", words, prompts[0][0])
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and you?", Model: "blind"})
		last := len(p.Prompts()) - 1
		described := fmt.Sprintf("[image \"cat.png\", image/png, 640×480, %s: this model cannot see images]", core.ByteSize(int64(len(cat))))
		if len(p.Images()[last]) != 0 || !strings.Contains(p.Prompts()[last][0], described) {
			t.Errorf("got %d images and %q, want none and %q", len(p.Images()[last]), p.Prompts()[last][0], described)
		}
		view, err := client.Call(t.Context(), h, ops.GetPrompt, ops.InSession{SessionID: id})
		if err != nil || len(view.Messages[0].Media) != 1 || view.Messages[0].Media[0].BlobID != got.BlobID {
			t.Errorf("got the prompt view %+v and %v, want the image in it", view.Messages[0], err)
		}
		contextOf(t, h.Client, id)
		if data, err := readBlob(t.Context(), h.Client, got.BlobID); err != nil || !bytes.Equal(data, cat) {
			t.Errorf("got %d bytes back and %v, want the %d of the image", len(data), err, len(cat))
		}
	})
}
