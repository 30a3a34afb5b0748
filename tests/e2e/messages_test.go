package e2e_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/url"
	"reflect"
	"slices"
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

// Messages are read one by one and newest first, rated and labeled: nothing runs, watchers
// are notified, exports have it, and it goes with the message.
func TestAnnotations(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, ops.NewSession{})
		for _, text := range []string{"one", "two", "three"} {
			apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: text})
		}
		log := apptest.ListMessages(t, h.Client, id)
		newest, err := client.Call(t.Context(), h, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{Descending: true, PageQuery: core.PageQuery{Limit: 4}}})
		must.True(t, err == nil && len(newest.Items) == 4 && newest.Items[0].ID == log[5].ID && newest.NextCursor != nil, "newest first: got %+v, %v", newest, err)
		rest, err := client.Call(t.Context(), h, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{Descending: true, PageQuery: core.PageQuery{Limit: 4, Cursor: *newest.NextCursor}}})
		all := append(newest.Items, rest.Items...)
		slices.Reverse(all)
		if err != nil || len(all) != 6 || !slices.EqualFunc(all, log, func(a, b core.Message) bool { return a.ID == b.ID }) {
			t.Errorf("two pages: got %d messages, %v, want the log", len(all), err)
		}

		answer := log[5]
		got, err := client.Call(t.Context(), h, ops.GetMessage, apptest.InMessage(id, answer.ID))
		compare.True(t, err == nil && got.Content == answer.Content, "got the message %+v, %v", got, err)
		since := newest.LastEventID
		rated, err := client.Call(t.Context(), h, ops.PutFeedback, ops.MessageFeedback{InMessage: apptest.InMessage(id, answer.ID), Rating: core.RatingDown, Comment: "The date is wrong."})
		if err != nil || rated.Feedback == nil || rated.Feedback.Rating != core.RatingDown || rated.Feedback.At.IsZero() {
			t.Fatalf("rated: got %+v, %v", rated.Feedback, err)
		}
		labeled, err := client.Call(t.Context(), h, ops.PutMessageMetadata, ops.MessageMetadata{InMessage: apptest.InMessage(id, answer.ID), Metadata: json.RawMessage(`{"label": "important", "excerpt": {"head": 0, "tail": 0}}`)})
		if err != nil || !sameJSON(labeled.Metadata, `{"label": "important"}`) || labeled.Feedback == nil {
			t.Errorf("labeled: got %s, %+v, %v, want the label and no excerpt", labeled.Metadata, labeled.Feedback, err)
		}
		told := 0
		for e, err := range h.WatchSession(t.Context(), id, core.Cursor{After: since}) {
			must.True(t, err == nil && e.Type == core.EventMessageUpdated, "got event %s, %v, want message.updated", e.Type, err)
			if told++; told == 2 {
				break
			}
		}
		if after := apptest.ListMessages(t, h.Client, id); len(after) != 6 || after[5].Branch != nil || after[5].Feedback == nil {
			t.Errorf("got %d messages, the last one %+v, want no branch", len(after), after[len(after)-1])
		}
		var file bytes.Buffer
		if err := client.Download(t.Context(), h.Client, ops.ExportSession, ops.SessionExport{InSession: ops.InSession{SessionID: id}, Format: core.ExportJSON}, &file); err != nil || !strings.Contains(file.String(), "The date is wrong.") {
			t.Errorf("the export has no feedback, %v", err)
		}
		compare.Equal(t, "a rating that does not exist", http.StatusUnprocessableEntity, status(compare.ErrorOf(client.Call(t.Context(), h, ops.PutFeedback, ops.MessageFeedback{InMessage: apptest.InMessage(id, answer.ID), Rating: "sideways"}))))
		must.Get(client.Call(t.Context(), h, ops.DeleteFeedback, apptest.InMessage(id, answer.ID)))(t)
		if got, err = client.Call(t.Context(), h, ops.GetMessage, apptest.InMessage(id, answer.ID)); err != nil || got.Feedback != nil || len(got.Metadata) == 0 {
			t.Errorf("got %+v, %v, want the feedback removed and nothing else", got, err)
		}
		must.Get(client.Call(t.Context(), h, ops.PutFeedback, ops.MessageFeedback{InMessage: apptest.InMessage(id, answer.ID), Rating: core.RatingUp, Comment: "Rosebud"}))(t)
		must.Get(client.Call(t.Context(), h, ops.DeleteMessage, apptest.InMessage(id, answer.ID)))(t)
		compare.Equal(t, "a deleted message", http.StatusNotFound, status(compare.ErrorOf(client.Call(t.Context(), h, ops.GetMessage, apptest.InMessage(id, answer.ID)))))
		compare.Equal(t, "feedback on a deleted message", http.StatusNotFound, status(compare.ErrorOf(client.Call(t.Context(), h, ops.PutFeedback, ops.MessageFeedback{InMessage: apptest.InMessage(id, answer.ID), Rating: core.RatingUp}))))
	})
}

// sameJSON reports whether two texts say the same in JSON.
func sameJSON(a []byte, b string) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

// status returns the status of the server's refusal; 0 = it did not refuse.
func status(err error) int {
	var problem *client.ProblemError
	if errors.As(err, &problem) {
		return problem.Status
	}
	return 0
}

// Lists of sessions are narrowed by what people sort them by.
func TestSessionFilters(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		begin := core.Now()
		pumps := apptest.NewSession(t, h.Client, ops.NewSession{Title: "Pumps", Pinned: true, Tags: []string{"work", "hall 3", "work"}, Metadata: json.RawMessage(`{"project": "p-1", "n": 3, "done": true}`)})
		bees := apptest.NewSession(t, h.Client, ops.NewSession{Title: "Bees", Tags: []string{"home"}, Metadata: json.RawMessage(`{"project": "p-2", "n": 3, "done": "true"}`)})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: bees, Content: "Pumps are not about bees."})
		plain := apptest.NewSession(t, h.Client, ops.NewSession{})
		all := []core.SessionID{pumps, bees, plain}
		yes, no := true, false
		for name, c := range map[string]struct {
			q    core.SessionQuery
			want []core.SessionID
		}{
			"pinned":              {core.SessionQuery{Pinned: &yes}, all[:1]},
			"not pinned":          {core.SessionQuery{Pinned: &no}, all[1:]},
			"tag":                 {core.SessionQuery{Tag: "hall 3"}, all[:1]},
			"part of a tag":       {core.SessionQuery{Tag: "hall"}, nil},
			"metadata":            {core.SessionQuery{Metadata: json.RawMessage(`{"n": 3}`)}, all[:2]},
			"two members":         {core.SessionQuery{Metadata: json.RawMessage(`{"n": 3.0, "project": "p-2"}`)}, all[1:2]},
			"boolean":             {core.SessionQuery{Metadata: json.RawMessage(`{"done": true}`)}, all[:1]},
			"text like a boolean": {core.SessionQuery{Metadata: json.RawMessage(`{"done": "true"}`)}, all[1:2]},
			"quotes":              {core.SessionQuery{Metadata: json.RawMessage(`{"n') OR 1=1 --": "'"}`)}, nil},
			"words":               {core.SessionQuery{Text: "pumps"}, all[:2]},
			"words in titles":     {core.SessionQuery{Text: "pumps", TitlesOnly: true}, all[:1]},
			"idle":                {core.SessionQuery{Status: core.SessionIdle}, all},
			"running":             {core.SessionQuery{Status: core.SessionRunning}, nil},
			"created from now":    {core.SessionQuery{CreatedAfter: time.Now().Add(time.Hour)}, nil},
			"created before":      {core.SessionQuery{CreatedBefore: begin}, nil},
			"active since":        {core.SessionQuery{UpdatedAfter: begin}, all},
			"all at once":         {core.SessionQuery{Pinned: &yes, Tag: "work", Text: "pumps", Status: core.SessionIdle, CreatedAfter: begin}, all[:1]},
		} {
			page, err := client.Call(t.Context(), h, ops.ListSessions, c.q)
			var got []core.SessionID
			for _, s := range page.Items {
				got = append(got, s.ID)
			}
			slices.Sort(got)
			compare.True(t, err == nil && slices.Equal(got, c.want), "%s: got %v, %v, want %v", name, got, err, c.want)
		}
		for _, q := range []string{`[1]`, `{}`, `{"a": null}`, `{"a": {"b": 1}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`, `{`} {
			compare.Equal(t, "metadata="+q, http.StatusUnprocessableEntity, status(compare.ErrorOf(client.Call(t.Context(), h, ops.ListSessions, core.SessionQuery{Metadata: json.RawMessage(q)}))))
		}
		changed, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: pumps}, SessionPatch: core.SessionPatch{Pinned: &no, Tags: []string{}}})
		compare.True(t, err == nil && !changed.Pinned && len(changed.Tags) == 0 && changed.Title == "Pumps", "got %+v, %v, want it without pin and tags", changed, err)
		compare.Equal(t, "21 empty tags", http.StatusUnprocessableEntity, status(compare.ErrorOf(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: pumps}, SessionPatch: core.SessionPatch{Tags: make([]string, 21)}}))))
	})
}

// The messages that a process keeps in memory are those of the log, whatever happens between two
// turns: the prompt is what /prompt, which reads the log, shows before.
func TestPromptsFollowTheLog(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		p := apptest.NewProvider(t, provider.Options{Record: true})
		h := apptest.New(t, url, apptest.WithModel("house", 32_000, 1000, p))
		c, ctx := h.Client, t.Context()
		id := apptest.NewSession(t, c, ops.NewSession{})
		turn := func(content string) {
			t.Helper()
			view := must.Get(client.Call(ctx, c, ops.GetPrompt, ops.InSession{SessionID: id}))(t)
			asked := len(p.Received())
			apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: content})
			var want, got []string
			for _, m := range append(view.Messages, core.PromptMessage{Role: core.RoleUser, Content: content}) {
				if n := len(want); n > 0 && m.Role == core.RoleUser && strings.HasPrefix(want[n-1], "user: ") {
					want[n-1] += "\n\n" + m.Content // providers want turns
					continue
				}
				want = append(want, fmt.Sprintf("%s: %s", m.Role, m.Content))
			}
			for _, m := range p.Received()[asked].Messages {
				got = append(got, fmt.Sprintf("%s: %s", m.Role, m.Text))
			}
			compare.Equal(t, content+": prompt", want, got)
		}
		find := func(role core.Role, content string) core.MessageID {
			t.Helper()
			page := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{AllBranches: true, PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}}))(t)
			messages := page.Items
			i := slices.IndexFunc(messages, func(m core.Message) bool { return m.Role == role && strings.HasSuffix(m.Content, content) })
			must.True(t, i >= 0, "there is no message %q", content)
			return messages[i].ID
		}
		turn("one")
		turn("two")
		turn("three")
		turn("tool four")
		turn("five")
		must.Get(client.Call(ctx, c, ops.DeleteMessage, apptest.InMessage(id, find(core.RoleAssistant, "one"))))(t)
		turn("six, after a message was deleted")
		must.Get(client.Call(ctx, c, ops.EditMessage, ops.EditedMessage{NewMessage: ops.NewMessage{InSession: ops.InSession{SessionID: id}, Content: "two, in other words", Run: new(false)}, MessageID: find(core.RoleUser, "two")}))(t)
		turn("seven, after a message was revised")
		must.Get(client.Call(ctx, c, ops.SendMessage, ops.NewMessage{InSession: ops.InSession{SessionID: id}, Run: new(false), Role: core.RoleUser, Content: "in passing"}))(t)
		turn("eight, after a message without a run")
		old := find(core.RoleAssistant, "eight, after a message without a run")
		apptest.SendMessage(t, c, core.SendMessage{SessionID: id, Content: "five, otherwise", Edits: find(core.RoleUser, "five")})
		turn("nine, on another branch")
		must.Get(client.Call(ctx, c, ops.SelectMessage, apptest.InMessage(id, old)))(t)
		turn("ten, on the first branch")
		ten := find(core.RoleAssistant, "ten, on the first branch")
		must.Get(client.Call(ctx, c, ops.RegenerateMessage, core.Regenerate{SessionID: id, MessageID: ten}))(t)
		newest := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{Descending: true}}))(t)
		compare.Equal(t, "the new answer's branch", &core.Branch{Index: 2, Count: 2, Previous: ten}, newest.Items[0].Branch)
		turn("eleven, after a new answer")
		must.Get(client.Call(ctx, c, ops.PinMessage, ops.Pinned{InMessage: apptest.InMessage(id, find(core.RoleUser, "three")), Pinned: new(true)}))(t)
		turn("twelve, after a pin")
		must.Get(client.Call(ctx, c, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: id}}))(t)
		turn("thirteen, after a summary")
		turn("fourteen")

		page := must.Get(client.Call(ctx, c, ops.ListMessages, ops.MessageList{InSession: ops.InSession{SessionID: id}, MessageQuery: core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}}))(t)
		for i, m := range page.Items[1:] {
			if before := page.Items[i]; m.ParentID != before.ID && before.Seq == m.Seq-1 {
				t.Errorf("message %d: got the parent %s, want %s", m.Seq, m.ParentID, before.ID)
			}
		}
		paths := 0
		for e, err := range c.WatchSession(ctx, id, core.Cursor{}) { // everything once more
			must.Do(t, err)
			if d, ok := e.Data.(core.SessionData); ok && d.Path != nil {
				paths++
			}
			compare.True(t, !strings.Contains(dataText(t, e), `"answer to: one"`), "event %d has what was deleted: %+v", e.Seq, e.Data)
			if e.Seq == page.LastEventID {
				break
			}
		}
		compare.Equal(t, "changes of the path: an edit, a selection, a new answer", 3, paths)
	})
}

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
	must.True(t, err == nil, "upload %s: %v", name, err)
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
			compare.True(t, len(images) == 1 && images[0] == want, "request %d: got %d images, want the one", i, len(images))
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
