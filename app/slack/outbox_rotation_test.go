package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// streamSlack is a Slack that shows streams, without a network: it works in simulated time.
type streamSlack struct {
	streams []*shownStream
}

type shownStream struct {
	ts             string
	text           strings.Builder
	started, ended time.Time // ended is zero while it is open
}

// maxStream is how long Slack lets a stream live.
const maxStream = 5 * time.Minute

// RoundTrip answers a call of the Web API.
func (s *streamSlack) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	answer := map[string]any{"ok": true, "channel": "C1"}
	switch method := strings.TrimPrefix(r.URL.Path, "/api/"); method {
	case "chat.startStream":
		ts := fmt.Sprintf("1000.%06d", len(s.streams))
		s.streams = append(s.streams, &shownStream{ts: ts, started: time.Now()})
		answer["ts"] = ts
		s.streams[len(s.streams)-1].add(form)
	case "chat.appendStream", "chat.stopStream":
		last := s.streams[len(s.streams)-1]
		if !last.ended.IsZero() || time.Since(last.started) >= maxStream {
			answer = map[string]any{"ok": false, "error": "message_not_in_streaming_state"}
			break
		}
		last.add(form)
		if method == "chat.stopStream" {
			last.ended = time.Now()
		}
	case "chat.update":
		var blocks []struct{ Text string }
		_ = json.Unmarshal([]byte(form.Get("blocks")), &blocks) // without blocks the stream says nothing
		i := slices.IndexFunc(s.streams, func(one *shownStream) bool { return one.ts == form.Get("ts") })
		s.streams[i].ended = s.streams[i].started.Add(maxStream - 1) // when Slack ended it
		s.streams[i].text.Reset()
		for _, b := range blocks {
			s.streams[i].text.WriteString(b.Text)
		}
	default:
		answer = map[string]any{"ok": false, "error": "unexpected_" + method}
	}
	data, err := json.Marshal(answer)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(string(data))), Request: r}, err
}

func (s *shownStream) add(form url.Values) {
	var chunks []struct{ Type, Text string }
	_ = json.Unmarshal([]byte(form.Get("chunks")), &chunks) // stopStream may have none
	for _, c := range chunks {
		s.text.WriteString(c.Text)
	}
	s.text.WriteString(form.Get("markdown_text"))
}

// newStreaming returns a follower of a session in which a person of Slack waits for an answer.
func newStreaming(t *testing.T, s *streamSlack) *follower {
	t.Helper()
	db := dbtest.SQLite(t).Gorm
	api := slack.New("xoxb-1", slack.OptionAPIURL("https://slack.test/api/"), slack.OptionHTTPClient(&http.Client{Transport: s}))
	me := &client{Client: api, me: &slack.AuthTestResponse{TeamID: "T1"}}
	clients := &Clients{known: core.NewCache[string, *clientEntry](1)}
	clients.known.Set("", &clientEntry{client: me, until: time.Now().Add(24 * time.Hour)})
	o := NewOutbox(OutboxOptions{Posts: repositories.NewSlackPosts(db), Worker: "a/1", Logger: slog.New(slog.DiscardHandler), Threads: repositories.NewSlackThreads(db), Clients: clients})
	session := must.Get(repositories.NewSessions(db).Create(t.Context(), core.Session{Owner: "ann", Agent: "a", UserID: "slack:T1/U1"}))(t)
	must.Get(o.Threads.Bind(t.Context(), core.SlackThread{SessionID: session.ID, Owner: "ann", Team: "T1", Channel: "C1", Thread: "1000.0", Mode: core.SlackTwoWay}))(t)
	must.Get(repositories.NewRuns(db).Accept(t.Context(), core.Tenant{Owner: "ann"}, core.AcceptRun{SessionID: session.ID, Agent: "a", Worker: "w", Input: core.RunInput{Content: "go"}}))(t)
	f := newFollower(o, must.Get(o.Threads.Claim(t.Context(), core.SlackClaim{Worker: o.Worker, Lease: leaseTime, Limit: 1}))(t)[0])
	f.active, f.asker = true, slackPerson{"T1", "U1"}
	return f
}

// writeAnswer lets the model write an answer of lines of code, one a second. After each it calls
// pause with the number of the line.
func writeAnswer(t *testing.T, f *follower, lines int, pause func(int)) {
	t.Helper()
	whole := ""
	write := func(text string) {
		t.Helper()
		must.Do(t, f.addDelta(t.Context(), core.DeltaData{MessageID: "m1", Offset: len(whole), Text: text}))
		whole += text
		f.lastEvent = time.Now()
	}
	write("```go\n")
	for i := range lines {
		write(fmt.Sprintf("line %d\n", i))
		pause(i)
		must.Do(t, f.tick(t.Context()))
	}
	write("```\nThe end.")
	must.Do(t, f.postMessage(t.Context(), core.Message{ID: "m1", Role: core.RoleAssistant, Content: whole, OnPath: true}))
}

// Slack ends a stream after five minutes. An answer that is written for a quarter of an hour goes
// on in another stream before that; each part is whole Markdown, and nothing is lost or doubled.
func TestStreamRotation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &streamSlack{}
		f := newStreaming(t, s)
		writeAnswer(t, f, 15*60, func(int) { time.Sleep(time.Second) })
		checkStreams(t, s, f, 15*60, 4)
	})
}

// A stream that Slack has ended, because nothing could be sent for a while, goes on in another
// one; the code block in which it ended is closed.
func TestStreamExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &streamSlack{}
		f := newStreaming(t, s)
		writeAnswer(t, f, 60, func(line int) {
			time.Sleep(time.Second)
			if line == 30 {
				f.pace.slowDown("C1", maxStream)
				time.Sleep(maxStream)
			}
		})
		checkStreams(t, s, f, 60, 2)
	})
}

// checkStreams checks that the streams have all lines once, and that none became too old.
func checkStreams(t *testing.T, s *streamSlack, f *follower, lines, streams int) {
	t.Helper()
	posts := must.Get(f.Posts.All(t.Context(), f.SessionID))(t)
	next := 0
	for i, part := range s.streams {
		life := part.ended.Sub(part.started)
		compare.True(t, !part.ended.IsZero() && life < maxStream, "stream %d lived for %s, want it ended before %s", i, life, maxStream)
		text := part.text.String()
		compare.Equal(t, "fences of stream "+strconv.Itoa(i), 2, strings.Count(text, "```"))
		for l := range strings.Lines(text) {
			if l == fmt.Sprintf("line %d\n", next) {
				next++
			} else if strings.HasPrefix(l, "line") {
				t.Errorf("stream %d has %q, want line %d", i, l, next)
			}
		}
	}
	compare.Equal(t, "lines, streams, posts", []any{lines, streams, streams}, []any{next, len(s.streams), len(posts)})
	for _, p := range posts {
		compare.Equal(t, "post: want it complete", []any{false, core.SlackPostSent}, []any{p.Streaming, p.State})
	}
}

// A thread is followed for ten minutes without an event of the run at work, and not longer: its
// lease and its goroutine are free then, and the next event brings another follower.
func TestFollowerEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newStreaming(t, &streamSlack{})
		began := time.Now()
		for time.Since(began) <= stuckTime {
			if err := f.tick(t.Context()); err != nil {
				t.Fatalf("after %s: %v, want it to follow", time.Since(began), err)
			}
			time.Sleep(tickEvery)
		}
		compare.Error(t, fmt.Sprintf("after %s: want the end", time.Since(began)), errIdle, f.tick(t.Context()))
		f.lastEvent, f.active = time.Now(), false
		time.Sleep(idleTime + tickEvery)
		compare.Error(t, "without a run: want the end", errIdle, f.tick(t.Context()))
	})
}
