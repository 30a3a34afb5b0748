package slack

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/slack-go/slack"
	"pgregory.net/rapid"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
	"bobbin/tests/slackfake/fakeslack"
)

// Whatever the text, the parts join to it, fit into posts, begin and end between characters,
// and leave no code block open.
func TestSplitTextProperties(t *testing.T) {
	t.Parallel()
	line := rapid.OneOf(
		rapid.SampledFrom([]string{"", "", "```", "```go", "````md", "~~~", "| a | b |", "|---|---|", "| 1 | 2 |", "# Head", "- item"}),
		rapid.StringMatching(`[a-z 😀<|]{0,80}`),
		rapid.Map(rapid.IntRange(0, 14_000), func(n int) string { return strings.Repeat("wörd😀", n/6) }),
	)
	seed.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(line, 0, 400).Draw(t, "lines"), "\n")
		if rapid.Bool().Draw(t, "many rows") {
			text += "\n\n| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", rapid.IntRange(0, 300).Draw(t, "rows"))
		}
		checkParts(t, text)
	})
}

type failer interface {
	Fatalf(format string, args ...any)
}

func checkParts(t failer, text string) {
	at := 0
	for i, s := range splitText(text, 0) {
		if s.from != at || s.to <= s.from {
			t.Fatalf("part %d: got %+v, want it to begin at %d", i, s, at)
		}
		at = s.to
		part := renderSpan(text, s)
		if n := core.UTF16Len(part); n > maxPost {
			t.Fatalf("part %d: got %d characters, want at most %d", i, n, maxPost)
		}
		if !utf8.ValidString(part) {
			t.Fatalf("part %d cuts a character", i)
		}
		if openFence(part) {
			t.Fatalf("part %d leaves a code block open:\n%s", i, part)
		}
		if rows := longestTable(part); rows > 100 && !regexp.MustCompile("```|~~~").MatchString(part) {
			t.Fatalf("part %d: got a table of %d rows, want at most 100", i, rows)
		}
	}
	if at != len(text) {
		t.Fatalf("the parts end at %d, want %d", at, len(text))
	}
}

// openFence reports whether the Markdown ends in a code block.
func openFence(text string) bool {
	opening := regexp.MustCompile("^\\s*(`{3,20}|~{3,20})([^`]*)$")
	fence := ""
	for l := range strings.SplitSeq(text, "\n") {
		trimmed := strings.TrimSpace(l)
		if m := opening.FindStringSubmatch(l); fence == "" && m != nil {
			fence = m[1]
		} else if fence != "" && strings.HasPrefix(trimmed, fence) && strings.Trim(trimmed, fence[:1]) == "" {
			fence = ""
		}
	}
	return fence != ""
}

func longestTable(text string) int {
	longest, rows := 0, 0
	for l := range strings.SplitSeq(text, "\n") {
		if l != "| 1 | 2 |" {
			rows = 0
			continue
		}
		rows++
		longest = max(longest, rows)
	}
	return longest
}

// The first parts stay the same while the text grows, as it does in a stream.
func TestSplitTextIsStable(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 400 {
		switch {
		case i%40 == 0:
			b.WriteString("\n```go\n")
		case i%40 == 20:
			b.WriteString("```\n\n")
		default:
			fmt.Fprintf(&b, "line %d with some words in it, so that it is long enough\n", i)
		}
	}
	text := b.String()
	whole := splitText(text, 0)
	if len(whole) < 2 {
		t.Fatalf("got %d parts, want several", len(whole))
	}
	for cut := 0; cut < len(text); cut += 701 {
		parts := splitText(text[:cut], 0)
		for i := range max(len(parts)-1, 0) {
			if parts[i] != whole[i] {
				t.Fatalf("with %d bytes: part %d is %+v, want %+v", cut, i, parts[i], whole[i])
			}
		}
	}
}

func TestSplitTextEndsWell(t *testing.T) {
	t.Parallel()
	prose := strings.Repeat("Some words. ", 700) // 8,400
	code := strings.Repeat("x := 1\n", 900)      // 6,300
	rows := strings.Repeat("| 1 | 2 |\n", 95)
	for name, test := range map[string]struct {
		text string
		want []string // how each part begins, and how it ends
	}{
		"short":           {"Hello.", []string{"Hello.", "Hello."}},
		"paragraphs":      {prose + "\n\nNext " + prose, []string{"Some", "words. ", "Next", "words. "}},
		"before a block":  {prose + "\n```go\n" + code + "```\nEnd.", []string{"Some", "words. ", "```go\nx", "End."}},
		"in a long block": {"```go\n" + code + code + "```\nEnd.", []string{"```go\nx", "x := 1\n```", "```go\nx", "End."}},
		"in a long table": {"| a | b |\n|---|---|\n" + rows, []string{"| a | b |\n|---|---|\n| 1", "| 2 |", "| 1", "| 2 |"}},
		"one word":        {strings.Repeat("x", 12_000), []string{"xxx", "xxx", "xxx", "xxx"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkParts(t, test.text)
			spans := splitText(test.text, 0)
			if len(spans) != len(test.want)/2 {
				t.Fatalf("got %d parts, want %d", len(spans), len(test.want)/2)
			}
			for i, s := range spans {
				part := renderSpan(test.text, s)
				if !strings.HasPrefix(part, test.want[2*i]) || !strings.HasSuffix(part, test.want[2*i+1]) {
					t.Errorf("part %d: got %.40q … %q, want %q … %q", i, part, part[max(0, len(part)-20):], test.want[2*i], test.want[2*i+1])
				}
			}
		})
	}
}

func TestNeutralizeMentions(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"<!channel> and <!here|x>":  "<\u2060!channel> and <\u2060!here|x>",
		"<!subteam^S1> <@U123>":     "<\u2060!subteam^S1> <\u2060@U123>",
		"a < b <!-- c --> <a@b.de>": "a < b <!-- c --> <a@b.de>",
	} {
		compare.Equal(t, fmt.Sprintf("%q", in), want, neutralizeMentions(in))
	}
	got := plainText("a <b> & " + strings.Repeat("😀", 300))
	compare.True(t, strings.HasPrefix(got, "a &lt;b&gt; &amp; 😀") && core.UTF16Len(got) <= 320, "got %q, want it escaped and short", got)
}

// What can be approved is shown whole, exactly as it is. A call that is not has no button to approve
// it, shows a part of each argument, and says where to see it.
func TestApprovalShowsWholeCall(t *testing.T) {
	t.Parallel()
	notes := strings.Repeat("routine note. ", 80)
	for name, c := range map[string]struct {
		arguments string
		shown     []string
		whole     bool
	}{
		"nothing":             {`{}`, nil, true},
		"behind a long value": {`{"aaa": "` + notes + `", "command": "rm -rf /srv"}`, []string{notes, `"command": "rm -rf /srv"`}, true},
		"long numbers":        {`{"id": 9007199254740993, "list": [1e400, {"a<b": null}]}`, []string{`"id": 9007199254740993`, `[1e400,{"a<b":null}]`}, true},
		"turned writing":      {"{\"to\": \"mallory\u202eecila\u2066\"}", []string{`"to": "mallory\u202eecila\u2066"`}, true},
		"escaped letters":     {`{"c\u006fmmand": "r\u006d", "x": "a\nb"}`, []string{`"command": "rm"`, `"x": "a\nb"`}, true},
		"a name twice":        {`{"command": "ls", "command": "rm"}`, []string{`"command": "ls"`, `"command": "rm"`}, true},
		"no object":           {`rm {"a":`, []string{`rm {"a":`}, true},
		"a password":          {`{"url": "https://u:p4ssw0rd@evil.example/"}`, []string{"[redacted: password]", "bobbin runs approve r1"}, false},
		"too long":            {`{"aaa": "` + strings.Repeat(notes, 20) + `", "command": "rm -rf /srv"}`, []string{"characters left out", `"command": "rm -rf /srv"`, "bobbin runs approve r1"}, false},
		"many arguments":      {manyArguments(2000), []string{`"argument 0"`, "bobbin runs approve r1"}, false},
		"emoji":               {`{"a": "` + strings.Repeat("😀", 20_000) + `"}`, []string{"left out", "bobbin runs approve r1"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			post := approvalContent(core.Approval{ID: "a1", RunID: "r1", Tool: "shell", Arguments: c.arguments, Status: core.ApprovalOpen})
			raw := must.Get(json.Marshal(post.blocks))(t)
			compare.Error(t, "Slack refuses the post", nil, fakeslack.CheckBlocks(raw))
			var blocks []struct{ Text struct{ Text string } }
			must.Do(t, json.Unmarshal(raw, &blocks))
			text := ""
			for _, b := range blocks {
				text += b.Text.Text
			}
			for _, want := range c.shown {
				compare.Contains(t, "text: want in it", want, text)
			}
			got := strings.Contains(string(raw), core.SlackActionApprove)
			compare.Equal(t, "whole, can be approved", []any{c.whole, true}, []any{got, strings.Contains(string(raw), core.SlackActionDeny)})
		})
	}
}

// manyArguments returns a call with so many arguments.
func manyArguments(n int) string {
	fields := map[string]string{}
	for i := range n {
		fields[fmt.Sprintf("argument %d", i)] = "x"
	}
	raw, _ := json.Marshal(fields)
	return string(raw)
}

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
