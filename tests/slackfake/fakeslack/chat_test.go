package fakeslack_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/slack-go/slack"

	"bobbin/tests/slackfake/fakeslack"
)

func headerServer(t *testing.T, header http.Header, status int) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// post calls a method by hand and returns the answer.
func post(t *testing.T, w *world, method string, values url.Values) string {
	t.Helper()
	values.Set("token", w.ws.Bot().Token())
	response, err := http.PostForm(w.APIURL()+method, values)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// errorOf returns the code of Slack's error.
func errorOf(err error) string {
	var slackErr slack.SlackErrorResponse
	if errors.As(err, &slackErr) {
		return slackErr.Err
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestPostUpdateDelete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	root := w.say(t, "question")
	_, ts, err := w.client.PostMessage("C1", slack.MsgOptionText("answer", false), slack.MsgOptionTS(root), slack.MsgOptionBlocks(slack.NewMarkdownBlock("", "**answer**")))
	if err != nil {
		t.Fatal(err)
	}
	if got := w.ws.Posts("C1"); len(got) != 1 || got[0].TS != ts || got[0].Markdown() != "**answer**" || got[0].ThreadTS != root {
		t.Fatalf("got %+v, want the answer in the thread", got)
	}
	// What sends a text alone loses the blocks.
	if _, _, _, err := w.client.UpdateMessage("C1", ts, slack.MsgOptionText("later", false)); err != nil {
		t.Fatal(err)
	}
	if got := w.ws.Thread("C1", root)[1]; got.Text != "later" || len(got.Blocks) > 0 || got.Edited == nil {
		t.Errorf("got %+v, want only the new text", got)
	}
	if _, _, _, err := w.client.UpdateMessage("C1", root, slack.MsgOptionText("x", false)); errorOf(err) != "cant_update_message" {
		t.Errorf("got %v, want that others' messages cannot be changed", err)
	}
	if _, _, err := w.client.DeleteMessage("C1", root); errorOf(err) != "cant_delete_message" {
		t.Errorf("got %v, want that others' messages cannot be deleted", err)
	}
	if _, _, err := w.client.DeleteMessage("C1", ts); err != nil || len(w.ws.Posts("C1")) != 0 {
		t.Errorf("got %v and %d posts, want none", err, len(w.ws.Posts("C1")))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	section := func(n int) slack.Block {
		return slack.NewSectionBlock(slack.NewTextBlockObject("mrkdwn", strings.Repeat("x", n), false, false), nil, nil)
	}
	button := slack.NewActionBlock("", slack.NewButtonBlockElement("a", strings.Repeat("v", 2001), slack.NewTextBlockObject("plain_text", "Go", false, false)))
	markdown := func(n int) slack.MsgOption { return slack.MsgOptionMarkdownText(strings.Repeat("x", n)) }
	for name, tt := range map[string]struct {
		options []slack.MsgOption
		want    string
	}{
		"no text":            {nil, "no_text"},
		"markdown at limit":  {[]slack.MsgOption{markdown(12_000)}, ""},
		"markdown above":     {[]slack.MsgOption{markdown(12_001)}, "msg_too_long"},
		"markdown with text": {[]slack.MsgOption{markdown(1), slack.MsgOptionText("x", false)}, "markdown_text_conflict"},
		"section at limit":   {[]slack.MsgOption{slack.MsgOptionBlocks(section(3000))}, ""},
		"section above":      {[]slack.MsgOption{slack.MsgOptionBlocks(section(3001))}, "invalid_blocks"},
		"sum of blocks":      {[]slack.MsgOption{slack.MsgOptionBlocks(section(3000), section(3000), section(3000), section(3000), section(1201))}, "msg_blocks_too_long"},
		"51 blocks":          {[]slack.MsgOption{slack.MsgOptionBlocks(dividers(51)...)}, "invalid_blocks"},
		"50 blocks":          {[]slack.MsgOption{slack.MsgOptionBlocks(dividers(50)...)}, ""},
		"button's value":     {[]slack.MsgOption{slack.MsgOptionBlocks(button)}, "invalid_blocks"},
		"no such thread":     {[]slack.MsgOption{slack.MsgOptionText("x", false), slack.MsgOptionTS("1.1")}, "thread_not_found"},
		"metadata":           {[]slack.MsgOption{slack.MsgOptionText("x", false), slack.MsgOptionMetadata(slack.SlackMetadata{EventType: "x"})}, "invalid_metadata_schema"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, _, err := w.client.PostMessage("C1", tt.options...); errorOf(err) != tt.want {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	if _, _, err := w.client.PostMessage("C404", slack.MsgOptionText("x", false)); errorOf(err) != "channel_not_found" {
		t.Errorf("got %v, want channel_not_found", err)
	}
}

func dividers(n int) []slack.Block {
	list := make([]slack.Block, n)
	for i := range list {
		list[i] = slack.NewDividerBlock()
	}
	return list
}

// A text of more than 40,000 characters is cut off, and only a warning says so.
func TestTruncation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, fakeslack.Options{})
	body := post(t, w, "chat.postMessage", url.Values{"channel": {"C1"}, "text": {strings.Repeat("ü", 40_001)}})
	if !strings.Contains(body, `"warning":"message_truncated"`) || !strings.Contains(body, `"ok":true`) {
		t.Errorf("got %.200s, want ok and a warning", body)
	}
	if got := len([]rune(w.ws.Posts("C1")[0].Text)); got != 40_000 {
		t.Errorf("got %d characters, want 40,000", got)
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	post := func(w *world) error {
		_, _, err := w.client.PostMessage("C1", slack.MsgOptionText("x", false))
		return err
	}
	t.Run("429", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fakeslack.Options{})
		w.Inject(fakeslack.Fault{Method: "chat.postMessage", Channel: "C1", Times: 1, RetryAfter: 7 * time.Second})
		var limited *slack.RateLimitedError
		if err := post(w); !errors.As(err, &limited) || limited.RetryAfter != 7*time.Second {
			t.Errorf("got %v, want 429 with 7 seconds", err)
		}
		if err := post(w); err != nil || len(w.ws.Posts("C1")) != 1 {
			t.Errorf("got %v and %d posts, want one after the fault", err, len(w.ws.Posts("C1")))
		}
	})
	t.Run("too fast", func(t *testing.T) {
		t.Parallel()
		c := newClock()
		w := newWorld(t, fakeslack.Options{PostInterval: time.Second, Now: c.read})
		var limited *slack.RateLimitedError
		if err := post(w); err != nil {
			t.Fatal(err)
		}
		if err := post(w); !errors.As(err, &limited) {
			t.Errorf("got %v, want 429", err)
		}
		c.advance(time.Second)
		if err := post(w); err != nil {
			t.Error(err)
		}
	})
	t.Run("lost answer", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fakeslack.Options{})
		w.Inject(fakeslack.Fault{Method: "chat.postMessage", Times: 1, LoseAnswer: true})
		if err := post(w); err == nil || len(w.ws.Posts("C1")) != 1 {
			t.Errorf("got %v and %d posts, want an error and one post", err, len(w.ws.Posts("C1")))
		}
	})
	t.Run("slow", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fakeslack.Options{})
		w.Inject(fakeslack.Fault{Delay: time.Hour})
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_ = w.Wait(ctx, func() bool { return len(w.ws.Posts("C1")) == 1 })
			cancel()
		}()
		_, _, err := w.client.PostMessageContext(ctx, "C1", slack.MsgOptionText("x", false))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want that the answer is still awaited when the post is there", err)
		}
	})
	t.Run("5xx and an error", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t, fakeslack.Options{})
		w.Inject(fakeslack.Fault{Times: 1, Status: 503})
		w.Inject(fakeslack.Fault{Error: "is_archived"})
		var status slack.StatusCodeError
		if err := post(w); !errors.As(err, &status) || status.Code != 503 {
			t.Errorf("got %v, want 503", err)
		}
		if err := post(w); errorOf(err) != "is_archived" {
			t.Errorf("got %v, want is_archived", err)
		}
		w.ClearFaults()
		if err := post(w); err != nil {
			t.Error(err)
		}
		var got []string
		for _, c := range w.Calls("chat.postMessage") {
			got = append(got, c.Error)
		}
		if want := []string{"503", "is_archived", ""}; !cmp.Equal(got, want) {
			t.Errorf("got calls %q, want %q", got, want)
		}
	})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	c := newClock()
	w := newWorld(t, fakeslack.Options{Now: c.read})
	root := w.say(t, "question")
	if _, _, err := w.client.StartStream("C1", slack.MsgOptionTS(root)); errorOf(err) != "missing_recipient_team_id" {
		t.Errorf("got %v, want that a channel needs a recipient", err)
	}
	recipient := []slack.MsgOption{slack.MsgOptionTS(root), slack.MsgOptionRecipientTeamID(w.ws.ID), slack.MsgOptionRecipientUserID(w.alice.ID)}
	_, ts, err := w.client.StartStream("C1", append(recipient, slack.MsgOptionMarkdownText("one "))...)
	if err != nil {
		t.Fatal(err)
	}
	task := slack.NewTaskUpdateChunk("t1", "Calculator")
	task.Status = "in_progress"
	if _, _, err := w.client.AppendStream("C1", ts, slack.MsgOptionChunks(slack.NewMarkdownTextChunk("two "), task)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.client.StopStream("C1", ts, slack.MsgOptionMarkdownText("three"), slack.MsgOptionBlocks(dividers(1)...)); err != nil {
		t.Fatal(err)
	}
	got := w.ws.Thread("C1", root)[1]
	if got.Markdown() != "one two three" || got.Stream.Open || len(got.Stream.Tasks) != 1 || got.Stream.Tasks[0].Title != "Calculator" || len(got.Blocks) == 0 {
		t.Errorf("got %+v with %+v, want a closed stream with a task", got, got.Stream)
	}
	if _, _, err := w.client.AppendStream("C1", ts, slack.MsgOptionMarkdownText("x")); errorOf(err) != "message_not_in_streaming_state" {
		t.Errorf("got %v, want that a closed stream takes nothing", err)
	}
	_, ts, err = w.client.StartStream("C1", recipient...)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := w.client.UpdateMessage("C1", ts, slack.MsgOptionText("all of it", false)); errorOf(err) != "streaming_state_conflict" {
		t.Errorf("got %v, want that a stream is not edited", err)
	}
	c.advance(5 * time.Minute)
	for name, call := range map[string]func(string, string, ...slack.MsgOption) (string, string, error){"append": w.client.AppendStream, "stop": w.client.StopStream} {
		if _, _, err := call("C1", ts, slack.MsgOptionMarkdownText("x")); errorOf(err) != "message_not_in_streaming_state" {
			t.Errorf("%s: got %v, want that the stream has expired", name, err)
		}
	}
	if _, _, _, err := w.client.UpdateMessage("C1", ts, slack.MsgOptionText("all of it", false)); err != nil {
		t.Errorf("got %v, want an edit of the expired stream", err)
	}
	for _, r := range w.delivered(t) {
		if r.inner["subtype"] == "message_changed" && nested(r)["bot_id"] != w.ws.Bot().BotID {
			t.Errorf("got %v, want the nested message to name the bot", r.inner)
		}
	}
}
