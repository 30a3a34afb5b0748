package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// The user eve writes wherever it is possible, while others go on and two operators
// purge her, again and again. Nobody sees an error that is not theirs, what others
// said stays, and when eve has stopped a purge leaves no word of hers.
func TestPurgeAgainstTraffic(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURL(t, func(t *testing.T, url string) {
		model := apptest.NewProvider(t, provider.Options{Fault: answersOnlyTheLast})
		h := apptest.New(t, url, apptest.WithModel("echo", 8192, 1024, model), func(c *config.Config) { c.Titles = true })
		shared := apptest.Must(h.CreateSession(t.Context(), core.Session{UserID: "bob"}))(t)
		operator := h.NewClient(h.App.Token())
		in := core.PurgeUser{Owner: core.LocalOwner, User: "eve", PurgeOptions: core.PurgeOptions{Force: true}}

		var traffic, purges sync.WaitGroup
		for _, work := range eves(h, shared.ID) {
			traffic.Go(func() {
				for i := range 8 {
					if err := work(i); err != nil && !purgedMeanwhile(err) {
						t.Errorf("while purges go on: %v", err)
					}
				}
			})
		}
		for range 2 {
			purges.Go(func() {
				for range 4 {
					if _, err := operator.PurgeUser(t.Context(), in); err != nil && !errors.Is(err, core.ErrConflict) {
						t.Errorf("purge: %v", err)
					}
				}
			})
		}
		traffic.Wait()
		purges.Wait()

		in.Compact = true
		report := apptest.Must(operator.PurgeUser(t.Context(), in))(t)
		if report.Left() != 0 || !report.Compacted {
			t.Errorf("the last purge: %+v", report)
		}
		checkBobs(t, h, shared.ID)
		folders := apptest.NewDisk(t, h, url).Folders
		if hits := (&apptest.Marks{ByPlace: map[string]string{"eve": eveWord + eveWord}}).Find(t, folders); len(hits) > 0 {
			t.Errorf("eve's word is still in %v", hits)
		}
	})
}

// answersOnlyTheLast answers the last of questions that came as one: the others may be
// eve's, and an answer to bob that quotes her is bob's.
func answersOnlyTheLast(w http.ResponseWriter, a provider.Asked) bool {
	if a.Summary {
		return false
	}
	stream(w, map[string]any{"content": "answer to: " + a.Question[strings.LastIndex(a.Question, "\n\n")+1:]}, "stop")
	return true
}

// eveWord is in all that eve writes.
const eveWord = "zqeveeveeveqz"

// purgedMeanwhile reports whether an error is what a purge makes of a request: its
// session is gone, or its run is canceled.
func purgedMeanwhile(err error) bool {
	return errors.Is(err, core.ErrNotFound) || errors.Is(err, core.ErrConflict) || errors.Is(err, core.ErrCanceled) || errors.Is(err, core.ErrStale) // a fork that lost to the purge
}

// eves is what eve does, and what bob does meanwhile.
func eves(h *apptest.Bobbin, shared core.SessionID) []func(i int) error {
	ctx := h.T.Context()
	text := func(i int) string { return fmt.Sprintf("%s number %d", eveWord, i) }
	return []func(int) error{
		func(i int) error { // in bob's session
			_, err := h.SendAndWait(ctx, core.SendMessage{SessionID: shared, Content: text(i), User: "eve", ClientMessageID: text(i)})
			return err
		},
		func(i int) error { // bob
			_, err := h.SendAndWait(ctx, core.SendMessage{SessionID: shared, Content: fmt.Sprintf("bob says %d", i), User: "bob"})
			return err
		},
		func(i int) error { // in sessions of her own, with a history and a fork
			s, err := h.CreateSession(ctx, core.Session{UserID: "eve", Title: text(i)})
			if err != nil {
				return err
			}
			body := strings.Repeat(`{"role": "user", "content": "`+text(i)+`"}`+"\n", 50)
			if _, err = h.ImportMessages(ctx, core.ImportMessages{SessionID: s.ID, Body: strings.NewReader(body), Format: core.ImportLines}); err != nil {
				return err
			}
			if _, err := h.ForkSession(ctx, s.ID, ""); err != nil {
				return err
			}
			_, err = h.SendAndWait(ctx, core.SendMessage{SessionID: s.ID, Content: text(i), User: "eve"})
			return err
		},
		func(int) error { // copies of bob's session
			_, err := h.ForkSession(ctx, shared, "")
			return err
		},
		func(i int) error {
			_, err := h.CreateMemory(ctx, core.Memory{UserID: "eve", Content: text(i)})
			return err
		},
		func(i int) error { return uploadOnce(h, text(i)) },
	}
}

// uploadOnce uploads a file of eve's with a key, so that the answer is kept.
func uploadOnce(h *apptest.Bobbin, text string) error {
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("user_id", "eve")
	part, _ := w.CreateFormFile("file", eveWord+".txt")
	_, _ = io.WriteString(part, text)
	_ = w.Close()
	req, err := http.NewRequestWithContext(h.T.Context(), http.MethodPost, h.URL+"/api/v1/blobs", &form)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	req.Header.Set("Idempotency-Key", strings.ReplaceAll(text, " ", "-"))
	res, err := h.HTTP.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusCreated {
		return fmt.Errorf("upload: status %d", res.StatusCode)
	}
	return nil
}

// checkBobs looks at what bob has: all that he said, with its answers, and a session
// that goes on.
func checkBobs(t *testing.T, h *apptest.Bobbin, shared core.SessionID) {
	t.Helper()
	page := apptest.Must(h.Messages(t.Context(), shared, core.MessageQuery{PageQuery: core.PageQuery{Limit: 200}}))(t)
	said := 0
	for _, m := range page.Items {
		if strings.HasPrefix(m.Content, "bob says") {
			said++
		}
		if strings.Contains(m.Content, eveWord) {
			t.Errorf("message %d still has eve's word", m.Seq)
		}
	}
	if said == 0 {
		t.Error("nothing of bob's is there: this shows nothing")
	}
	answer := apptest.Must(h.SendAndWait(t.Context(), core.SendMessage{SessionID: shared, Content: "bob goes on", User: "bob"}))(t)
	if answer.Run.Status != core.RunSucceeded {
		t.Errorf("the session cannot go on: %+v", answer.Run)
	}
}
