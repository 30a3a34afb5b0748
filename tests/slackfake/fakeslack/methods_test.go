package fakeslack_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"bobbin/tests/slackfake/fakeslack"
)

func TestAuth(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{Scopes: []string{"chat:write", "users:read"}})
	who, err := w.client.AuthTest()
	if err != nil || who.TeamID != w.ws.ID || who.BotID != w.ws.Bot().BotID || who.UserID != w.ws.Bot().ID {
		t.Errorf("got %+v and %v, want the app's bot", who, err)
	}
	if got := who.Header.Get("X-OAuth-Scopes"); got != "chat:write,users:read" {
		t.Errorf("got scopes %q, want those of the app", got)
	}
	if _, err := w.client.GetConversationInfo(&slack.GetConversationInfoInput{ChannelID: "C1"}); errorOf(err) != "missing_scope" {
		t.Errorf("got %v, want missing_scope", err)
	}
	if u, err := w.client.GetUserInfo(w.alice.ID); err != nil || u.Profile.Email != "" || u.Profile.DisplayName != "Alice" {
		t.Errorf("got %+v and %v, want Alice without e-mail address", u, err)
	}
	for token, want := range map[string]string{"": "not_authed", "xoxb-other": "invalid_auth", "xapp-1-A0001-1": "not_allowed_token_type"} {
		if _, err := slack.New(token, slack.OptionAPIURL(w.APIURL())).AuthTest(); errorOf(err) != want {
			t.Errorf("token %q: got %v, want %s", token, err, want)
		}
	}
	if got := post(t, w, "no.such", map[string][]string{}); !strings.Contains(got, "unknown_method") {
		t.Errorf("got %s, want unknown_method", got)
	}
	if _, err := w.client.SendAuthRevoke(""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.AuthTest(); errorOf(err) != "token_revoked" {
		t.Errorf("got %v, want token_revoked", err)
	}
}

func TestUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	u, err := w.client.GetUserInfo(w.alice.ID)
	if err != nil || u.ID != w.alice.ID || u.Profile.Email != "alice@example.org" || u.IsBot {
		t.Errorf("got %+v and %v, want Alice", u, err)
	}
	if _, err := w.client.GetUserInfo("U404"); errorOf(err) != "user_not_found" {
		t.Errorf("got %v, want user_not_found", err)
	}
	// Another app's bot has an id of its own.
	other := w.ws.AddBot("other")
	if _, _, err := slack.New(other.Token(), slack.OptionAPIURL(w.APIURL())).PostMessage("C1", slack.MsgOptionText("x", false)); err != nil {
		t.Fatal(err)
	}
	if got := w.ws.Messages("C1")[0]; got.AppID != other.AppID || len(w.ws.Posts("C1")) != 0 {
		t.Errorf("got %+v, want a message of the other app", got)
	}
}

func TestReplies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	root := w.say(t, "root")
	for _, text := range strings.Fields("a b c") {
		if _, err := w.alice.Reply("C1", root, text); err != nil {
			t.Fatal(err)
		}
	}
	metadata := slack.SlackMetadata{EventType: "x", EventPayload: map[string]any{"n": 1}}
	if _, _, err := w.client.PostMessage("C1", slack.MsgOptionTS(root), slack.MsgOptionText("own", false), slack.MsgOptionMetadata(metadata)); err != nil {
		t.Fatal(err)
	}
	var texts []string
	cursor, pages := "", 0
	for {
		page, more, next, err := w.client.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: root, Limit: 2, Cursor: cursor, IncludeAllMetadata: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range page {
			texts = append(texts, m.Text+m.Metadata.EventType)
		}
		pages++
		if cursor = next; !more {
			break
		}
	}
	if want := []string{"root", "a", "b", "c", "ownx"}; !cmp.Equal(texts, want) || pages != 3 {
		t.Errorf("got %q on %d pages, want %q on 3", texts, pages, want)
	}
	page, _, _, err := w.client.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: root, Oldest: w.ws.Thread("C1", root)[3].TS})
	if err != nil || len(page) != 1 || page[0].Metadata.EventType != "" {
		t.Errorf("got %+v and %v, want what is newer, without metadata", page, err)
	}
	if _, _, _, err := w.client.GetConversationReplies(&slack.GetConversationRepliesParameters{ChannelID: "C1", Timestamp: "1.1"}); errorOf(err) != "thread_not_found" {
		t.Errorf("got %v, want thread_not_found", err)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	ts, err := w.alice.Upload("C1", "", "look", "notes.txt", []byte("from Alice"))
	if err != nil {
		t.Fatal(err)
	}
	got := w.delivered(t)
	if want := []string{"message.file_share"}; !cmp.Equal(types(got), want) {
		t.Fatalf("got %v, want %v", types(got), want)
	}
	id := w.ws.Messages("C1")[0].Files[0].ID
	file, _, _, err := w.client.GetFileInfo(id, 0, 0)
	if err != nil || file.Mimetype != "text/plain" || file.Size != 10 {
		t.Fatalf("got %+v and %v, want the text", file, err)
	}
	var content bytes.Buffer
	if err := w.client.GetFile(file.URLPrivateDownload, &content); err != nil || content.String() != "from Alice" {
		t.Errorf("got %q and %v, want the text", content.String(), err)
	}
	// Without a token there is a page to sign in, with status 200.
	page, err := http.Get(file.URLPrivateDownload)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	if kind := page.Header.Get("Content-Type"); page.StatusCode != http.StatusOK || !strings.HasPrefix(kind, "text/html") {
		t.Errorf("got %d %s, want a page", page.StatusCode, kind)
	}
	sent, err := w.client.UploadFile(slack.UploadFileParameters{Filename: "out.csv", FileSize: 3, Content: "a,b", Channel: "C1", ThreadTimestamp: ts, InitialComment: "here"})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(w.ws.FileContent(sent.ID)); got != "a,b" {
		t.Errorf("got %q, want a,b", got)
	}
	if got := w.ws.Posts("C1"); len(got) != 1 || got[0].ThreadTS != ts || got[0].Text != "here" || got[0].Files[0].ID != sent.ID {
		t.Errorf("got %+v, want the file in the thread", got)
	}
}

func TestThreadStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	ts := w.say(t, "hello")
	answer, err := w.client.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{ChannelID: "C1", ThreadTS: ts, Status: slack.AgentSessionStatusProcessing, Title: "Agent"})
	if err != nil || answer.Status != slack.AgentSessionStatusProcessing || answer.Title != "Agent" {
		t.Errorf("got %+v and %v, want a session", answer, err)
	}
	want := fakeslack.ThreadState{Title: "Agent", Session: "processing"}
	if got := w.ws.ThreadState("C1", ts); !cmp.Equal(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, _, err := w.client.PostMessage("C1", slack.MsgOptionTS(ts), slack.MsgOptionText("done", false)); err != nil {
		t.Fatal(err)
	}
	if err := w.alice.StopAgent("C1", ts); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.SetAgentSessionStatus(slack.AgentSessionSetStatusParameters{ChannelID: "C1", ThreadTS: ts, Status: slack.AgentSessionStatusActive}); err != nil {
		t.Fatal(err)
	}
	if err := w.alice.StopAgent("C1", ts); err == nil {
		t.Error("an agent that is not processing has a button to stop it")
	}
	seen := map[string]bool{}
	for _, r := range w.delivered(t) {
		seen[r.event.InnerEvent.Type] = true
		seen[r.event.Type] = true
	}
	if !seen["agent_session_stopped"] {
		t.Errorf("got %v, want agent_session_stopped", seen)
	}
}

// OAuth with tokens that expire: a code and a refresh token work once.
func TestOAuth(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, fakeslack.Options{RotateTokens: true, Now: c.read})
	other := w.AddWorkspace("other")
	admin := other.AddUser("Admin", "")
	codes := make(chan string, 1)
	w.app.answer = func(received) (int, string) { return http.StatusOK, "" }
	redirect := redirectServer(t, codes)
	if _, _, err := admin.Approve(t.Context(), w.URL+"/oauth/v2/authorize?client_id=9.9&redirect_uri="+redirect); err == nil {
		t.Error("got an installation of an unknown app, want an error")
	}
	status, _, err := admin.Approve(t.Context(), w.URL+"/oauth/v2/authorize?client_id=1.1&state=s1&redirect_uri="+redirect)
	if err != nil || status != http.StatusOK {
		t.Fatalf("got %d and %v, want the redirect answered", status, err)
	}
	code := <-codes
	exchange := func(secret, redirect string) (*slack.OAuthV2Response, error) {
		return slack.GetOAuthV2Response(http.DefaultClient, "1.1", secret, code, redirect, slack.OAuthOptionAPIURL(w.APIURL()))
	}
	if _, err := exchange("wrong", redirect); errorOf(err) != "bad_client_secret" {
		t.Errorf("got %v, want bad_client_secret", err)
	}
	if _, err := exchange("client-secret", redirect+"/other"); errorOf(err) != "bad_redirect_uri" {
		t.Errorf("got %v, want bad_redirect_uri", err)
	}
	got, err := exchange("client-secret", redirect)
	if err != nil || got.Team.ID != other.ID || got.AuthedUser.ID != admin.ID || got.ExpiresIn != 43200 || got.BotUserID != other.Bot().ID {
		t.Fatalf("got %+v and %v, want an installation in the other workspace", got, err)
	}
	if _, err := exchange("client-secret", redirect); errorOf(err) != "invalid_code" {
		t.Errorf("got %v, want that a code works once", err)
	}
	c.advance(12 * time.Hour)
	if _, err := slack.New(got.AccessToken, slack.OptionAPIURL(w.APIURL())).AuthTest(); errorOf(err) != "token_expired" {
		t.Errorf("got %v, want token_expired", err)
	}
	refresh := func() (*slack.OAuthV2Response, error) {
		return slack.RefreshOAuthV2Token(http.DefaultClient, "1.1", "client-secret", got.RefreshToken, slack.OAuthOptionAPIURL(w.APIURL()))
	}
	next, err := refresh()
	if err != nil || next.RefreshToken == got.RefreshToken {
		t.Fatalf("got %+v and %v, want other tokens", next, err)
	}
	if _, err := slack.New(next.AccessToken, slack.OptionAPIURL(w.APIURL())).AuthTest(); err != nil {
		t.Error(err)
	}
	if _, err := refresh(); errorOf(err) != "invalid_refresh_token" {
		t.Errorf("got %v, want that a refresh token works once", err)
	}
	other.Uninstall()
	if _, err := slack.New(next.AccessToken, slack.OptionAPIURL(w.APIURL())).AuthTest(); errorOf(err) != "account_inactive" {
		t.Errorf("got %v, want account_inactive", err)
	}
}
