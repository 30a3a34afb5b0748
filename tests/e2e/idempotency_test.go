package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// posted is the answer to a POST.
type posted struct {
	status   int
	replayed bool
	id       string // of what was made
	code     string // of a problem
	location string
}

// postOnce sends a POST (a PATCH if the path begins so) with an idempotency key, and sends it again as long as the
// first one is being worked on. Several may call it at once.
func postOnce(h *apptest.Bobbin, secret, path, key, body string) (posted, error) {
	for {
		p, err := postRetrying(h, secret, path, key, body)
		if err != nil || p.code != "request_in_progress" {
			return p, err
		}
		apptest.PauseBriefly(h.T)
	}
}

func postRetrying(h *apptest.Bobbin, secret, path, key, body string) (posted, error) {
	method := http.MethodPost
	if target, ok := strings.CutPrefix(path, "PATCH "); ok {
		method, path = http.MethodPatch, target
	}
	r, err := http.NewRequestWithContext(h.T.Context(), method, h.URL+"/api/v1"+path, strings.NewReader(body))
	if err != nil {
		return posted{}, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Idempotency-Key", key)
	if secret != "" {
		r.Header.Set("X-API-Key", secret)
	}
	response, err := h.HTTP.Do(r)
	if err != nil {
		return posted{}, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return posted{}, err
	}
	var answer struct {
		ID   string
		Code string
		Run  core.Run
	}
	if err := json.Unmarshal(data, &answer); err != nil {
		return posted{}, fmt.Errorf("answer %s: %w", data, err)
	}
	return posted{response.StatusCode, response.Header.Get("Idempotency-Replayed") == "true", answer.ID + string(answer.Run.ID), answer.Code, response.Header.Get("Location")}, nil
}

// API.md: a POST with an Idempotency-Key is done once, whoever sends it how often
// and at once, also over a restart; two owners may use the same key.
func TestIdempotencyKeys(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url, func(c *config.Config) {
			c.Auth.Keys = []config.APIKey{{Name: "ann", Secret: config.NewSecret("ann-s3cret-0123456789")}, {Name: "bob", Secret: config.NewSecret("bob-s3cret-0123456789")}}
			c.Auth.Required = true
		})
		const ann, bob = "ann-s3cret-0123456789", "bob-s3cret-0123456789"
		post := func(secret, path, key, body string) posted {
			t.Helper()
			p, err := postOnce(h, secret, path, key, body)
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		const path, body = "/sessions", `{"title":"once"}`
		var wg sync.WaitGroup
		got := make([]posted, 16)
		for i := range got {
			wg.Go(func() {
				var err error
				if got[i], err = postOnce(h, ann, path, "k", body); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		first := 0
		for _, p := range got {
			if !p.replayed {
				first++
			}
			if p.status != 201 || p.id != got[0].id || p.location != "/api/v1/sessions/"+p.id {
				t.Errorf("got %+v, want the session %s", p, got[0].id)
			}
		}
		if page, err := h.NewClient(ann).Sessions(t.Context(), core.SessionQuery{}); err != nil || len(page.Items) != 1 || first != 1 {
			t.Errorf("got %d sessions by %d requests, %v, want one", len(page.Items), first, err)
		}
		if p := post(bob, path, "k", `{"title":"bob's"}`); p.status != 201 || p.replayed || p.id == got[0].id {
			t.Errorf("got %+v for bob, want a session of his own", p)
		}
		h.Restart()
		if p := post(ann, path, "k", body); p.status != 201 || !p.replayed || p.id != got[0].id || p.location != got[0].location {
			t.Errorf("got %+v after a restart, want the first answer", p)
		}
		for _, other := range []posted{post(ann, path, "k", `{"title":"twice"}`), post(ann, "/sessions/"+got[0].id+"/fork", "k", body)} {
			if other.status != 422 || other.code != "idempotency_key_reused" {
				t.Errorf("got %+v for another request, want 422", other)
			}
		}
		// For messages it is the client_message_id: the same run answers.
		messages := "/sessions/" + got[0].id + "/messages"
		one, two := post(ann, messages, "m", `{"content":"hello"}`), post(ann, messages, "m", `{"content":"hello"}`)
		if one.status != 200 || two.status != 200 || one.id == "" || one.id != two.id {
			t.Errorf("got %+v and %+v, want the same run", one, two)
		}
		if p := post(ann, messages, "m", `{"content":"bye"}`); p.status != 422 || p.code != "idempotency_key_reused" {
			t.Errorf("got %+v for another message, want 422", p)
		}
		for _, other := range []string{`"metadata":{"a":1}`, `"author":"Ann"`, `"options":{"temperature":0.5}`, `"multitask":"reject"`} {
			if p := post(ann, messages, "m", `{"content":"hello",`+other+`}`); p.status != 422 || p.code != "idempotency_key_reused" {
				t.Errorf("got %+v for the same text with %s, want 422", p, other)
			}
		}
		regenerate := messages + "/" + string(wholeLog(t, h.NewClient(ann), core.SessionID(got[0].id))[1].ID) + "/regenerate"
		if p := post(ann, regenerate, "m", `{"content":"hello"}`); p.status != 422 {
			t.Errorf("got %+v for another path, want 422", p)
		}
		three, four := post(ann, regenerate, "r", `{}`), post(ann, regenerate, "r", `{}`)
		if three.status != 200 || three.id == one.id || three.id != four.id {
			t.Errorf("got %+v and %+v, want the same new run", three, four)
		}
		if p := post(ann, regenerate, "r", `{"options":{"temperature":0.5}}`); p.status != 422 || p.code != "idempotency_key_reused" {
			t.Errorf("got %+v for another body of an answer anew, want 422", p)
		}
		post(ann, messages, "n", `{"content":"noted","run":false,"metadata":{"a":1,"b":2}}`)
		if p := post(ann, messages, "n", `{"run":false,"content":"noted","metadata":{"a":1,"b":2}}`); p.status != 200 {
			t.Errorf("got %+v for the same message that is only stored, want it", p)
		}
		for _, other := range []string{`"content":"another"`, `"content":"noted"`, `"content":"noted","role":"assistant","metadata":{"a":1,"b":2}`, `"content":"noted","metadata":{"a":1,"b":3}`, `"content":"noted","author":"Bob","metadata":{"a":1,"b":2}`} {
			if p := post(ann, messages, "n", `{"run":false,`+other+`}`); p.status != 422 || p.code != "idempotency_key_reused" {
				t.Errorf("got %+v for %s that is only stored, want 422", p, other)
			}
		}
		// A text that is changed in place is changed once.
		text := func() string {
			return wholeLog(t, h.NewClient(ann), core.SessionID(got[0].id))[0].Content
		}
		revise := "PATCH " + messages + "/" + string(wholeLog(t, h.NewClient(ann), core.SessionID(got[0].id))[0].ID)
		for _, c := range []struct {
			key, body, want string
			status          int
		}{
			{"p", `{"run":false,"content":"one"}`, "one", 200},
			{"p", `{"run":false,"content":"two"}`, "one", 422},
			{"q", `{"run":false,"content":"two"}`, "two", 200},
			{"p", `{"run":false,"content":"one"}`, "two", 200},
			{"k", `{"run":false,"content":"three"}`, "two", 422},
		} {
			if p := post(ann, revise, c.key, c.body); p.status != c.status || (p.code == core.CodeKeyReused) != (c.status == 422) || text() != c.want {
				t.Errorf("%s with the key %s: got %+v and the text %q, want %d and %q", c.body, c.key, p, text(), c.status, c.want)
			}
		}
		if p := post(ann, path, "p", body); p.status != 422 || p.code != core.CodeKeyReused {
			t.Errorf("got %+v for a session with the key of a changed text, want 422", p)
		}
		imported := post(ann, messages+"/import", "i", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`)
		again := post(ann, messages+"/import", "i", `[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]`)
		if log := wholeLog(t, h.NewClient(ann), core.SessionID(got[0].id)); imported.status != 200 || !again.replayed || len(log) != 5 {
			t.Errorf("got %+v, then %+v, and %d messages, want the history once", imported, again, len(log))
		}
	})
}
