package fakeslack_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/slack-go/slack"

	"bobbin/tests/slackfake/fakeslack"
)

// The page acts as a user, and shows what the app has answered as soon as it is there.
func TestPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	act := func(origin string, body map[string]string) int {
		t.Helper()
		body["team"], body["user"], body["channel"] = w.ws.ID, w.alice.ID, "C1"
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.URL+"/page/act", strings.NewReader(string(data)))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Origin", origin)
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	if status := act("https://example.org", map[string]string{"act": "post", "text": "x"}); status != http.StatusForbidden {
		t.Errorf("got %d for the page of another site, want 403", status)
	}
	if status := act(w.URL, map[string]string{"act": "nothing"}); status != http.StatusBadRequest {
		t.Errorf("got %d for an unknown action, want 400", status)
	}
	if status := act(w.URL, map[string]string{"act": "post", "text": "@bobbin 1 < 2"}); status != http.StatusOK {
		t.Fatalf("got %d, want 200", status)
	}
	root := w.ws.Messages("C1")[0]
	if want := w.ws.Bot().Mention() + " 1 &lt; 2"; root.Text != want {
		t.Errorf("got %q, want %q", root.Text, want)
	}
	state := func(after string) string {
		t.Helper()
		response, err := http.Get(w.URL + "/page/state?after=" + after)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		data, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	w.delivered(t)
	if got := state("0"); strings.Contains(got, `"ephemerals":null`) || strings.Contains(got, `"calls":null`) || strings.Contains(got, `"deliveries":null`) {
		t.Errorf("got %.300s, want lists: the page shows nothing otherwise", got)
	}
	var known struct{ Version json.Number }
	if err := json.Unmarshal([]byte(state("0")), &known); err != nil {
		t.Fatal(err)
	}
	next := make(chan string)
	go func() { next <- state(known.Version.String()) }()
	if _, _, err := w.client.PostMessage("C1", slack.MsgOptionTS(root.TS), slack.MsgOptionText("an answer", false)); err != nil {
		t.Fatal(err)
	}
	if got := <-next; !strings.Contains(got, "an answer") {
		t.Errorf("got %.300s, want the answer", got)
	}
	if _, err := w.client.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{ChannelID: "C1", ThreadTS: root.TS, Status: slack.AgentSessionStatusProcessing}); err != nil {
		t.Fatal(err)
	}
	for _, body := range []map[string]string{
		{"act": "edit", "ts": root.TS, "text": "changed"}, {"act": "stop", "ts": root.TS}, {"act": "dm"}, {"act": "command", "text": "/context now"}, {"act": "delete", "ts": root.TS},
	} {
		if status := act(w.URL, body); status != http.StatusOK {
			t.Errorf("%s: got %d, want 200", body["act"], status)
		}
	}
	if got := w.ws.Messages("C1")[0].Subtype; got != "tombstone" {
		t.Errorf("got %q, want a tombstone", got)
	}
}

// The page of an installation lists the workspaces, and its button goes back to the app
// with a code.
func TestInstallPage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	codes := make(chan string, 1)
	address := w.URL + "/oauth/v2/authorize?" + url.Values{"client_id": {"1.1"}, "scope": {"<chat:write>"}, "state": {"s1"}, "redirect_uri": {redirectServer(t, codes)}}.Encode()
	page, err := http.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	body, err := io.ReadAll(page.Body)
	if err != nil || !strings.Contains(string(body), "Allow in acme") || !strings.Contains(string(body), "&lt;chat:write&gt;") {
		t.Errorf("got %s and %v, want the workspace and the scopes", body, err)
	}
	back, err := http.PostForm(address, url.Values{"team": {w.ws.ID}})
	if err != nil {
		t.Fatal(err)
	}
	defer back.Body.Close()
	if code := <-codes; code == "" {
		t.Error("got no code, want one")
	}
}
