package slack_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

// maxSlackPart is what Slack takes in a markdown block and in a piece of a stream, in characters.
const maxSlackPart = 12_000

// longAnswer is an answer that takes several posts.
type longAnswer struct {
	kind, text string
}

// longAnswers returns answers of so many bytes: one of everything, in the long form one of each
// kind, too.
func longAnswers(size int) []longAnswer {
	w := apptest.NewWriter(60)
	n := 0
	next := func() int {
		n++
		return n
	}
	blocks := []struct {
		kind               string
		opening, line, end func() string
	}{
		{"paragraphs", constant(""), func() string { return fmt.Sprintf("Paragraph %d. %s\n\n", next(), w.Sentences(5)) }, constant("")},
		{"code", constant("```go\n"), func() string { return fmt.Sprintf("\tfmt.Println(%d, \"a line of code | with pipes\")\n\n", next()) }, constant("```\n\n")},
		{"table", constant("| pump | state | note |\n|------|:-----:|---|\n"), func() string { return fmt.Sprintf("| pump %d | red | %s |\n", next(), w.Sentences(1)) }, constant("\n")},
		{"nested lists", constant(""), func() string {
			return fmt.Sprintf("- item %d\n  1. %s\n     - deeper\n       - deepest, with `code`\n", next(), w.Sentences(1))
		}, constant("\n")},
		{"long lines", constant(""), func() string { return fmt.Sprintf("Line %d. %s\n", next(), w.Sentences(60)) }, constant("\n")},
		{"Chinese", constant(""), func() string { return fmt.Sprintf("%d。%s\n", next(), w.Chinese(120)) }, constant("\n")},
		{"no spaces", constant(""), func() string { return strings.Repeat(fmt.Sprintf("x%dy😀", next()), 400) }, constant("\n\n")},
	}
	var all []longAnswer
	everything := "\n\nTo <!channel> and <@U1>:\n\n"
	for _, b := range blocks {
		text, share := "\n\n"+b.opening(), b.opening()
		for len(text) < size {
			text += b.line()
		}
		for len(share) < size/len(blocks) {
			share += b.line()
		}
		all, everything = append(all, longAnswer{b.kind, text + b.end()}), everything+share+b.end()
	}
	all = append(all, longAnswer{"everything", everything + "The end."})
	if apptest.IsLong() {
		return all
	}
	return all[len(all)-1:]
}

func constant(text string) func() string { return func() string { return text } }

// longThread is a thread whose answer is long.
type longThread struct {
	longAnswer

	channel, root string
	parts         []string
	largest       int
}

// longSlack is a workspace with threads of long answers.
type longSlack struct {
	*workspace

	threads []*longThread
	seen    sync.Map // how many calls each channel has got when its model wrote the last piece
}

// ask asks for all answers at the same time.
func (w *longSlack) ask(t *testing.T, answers []longAnswer) {
	t.Helper()
	for i, a := range answers {
		th := &longThread{longAnswer: a, channel: w.ws.AddChannel(fmt.Sprintf("L%d", i+1), "long-"+a.kind).ID}
		w.threads = append(w.threads, th)
	}
	for _, th := range w.threads {
		var err error
		if th.root, err = w.alice.Post(th.channel, w.mention("tell me of ["+th.kind+"]")); err != nil {
			t.Fatal(err)
		}
	}
}

// holdPiece lets the model write the next piece when Slack has got something of the ones before,
// or after two seconds: a line without an end is not shown yet.
func (w *longSlack) holdPiece(question string) {
	for _, th := range w.threads {
		if !strings.Contains(question, "["+th.kind+"]") {
			continue
		}
		last, _ := w.seen.Load(th.channel)
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		now := 0
		_ = w.Wait(ctx, func() bool { // a line without an end needs no call
			now = w.callCount(th.channel)
			return last == nil || now > last.(int)
		})
		cancel()
		w.seen.Store(th.channel, now)
	}
}

// callCount returns how many calls there were for the channel.
func (w *longSlack) callCount(channel string) (n int) {
	for _, c := range w.Calls("") {
		if c.Channel == channel {
			n++
		}
	}
	return n
}

// check waits until the thread has the message, and checks its parts.
func (w *longSlack) check(t *testing.T, th *longThread) {
	t.Helper()
	message := w.findAnswer(t, th)
	want := strings.NewReplacer("<!channel>", "<\u2060!channel>", "<@U1>", "<\u2060@U1>").Replace(message)
	if message != "answer to: "+th.text {
		t.Errorf("%s: got a message of %d bytes, want %d", th.kind, len(message), len(th.text))
	}
	ctx, cancel := context.WithTimeout(t.Context(), apptest.Patience)
	defer cancel()
	var failure error
	err := w.Wait(ctx, func() bool {
		th.parts = nil
		for _, m := range w.ws.Thread(th.channel, th.root)[1:] {
			if m.Stream != nil && m.Stream.Open {
				failure = errors.New("a stream is open")
				return false
			}
			th.parts = append(th.parts, m.Markdown())
		}
		failure = compareParts(th.parts, want)
		return failure == nil
	})
	if err != nil {
		t.Fatalf("%s: %v (%v)", th.kind, failure, err)
	}
	for i, p := range th.parts {
		th.largest = max(th.largest, utf8.RuneCountInString(p), core.UTF16Len(p))
		if fault := unbalanced(p); fault != "" {
			t.Errorf("%s, part %d: %s: %.60q … %q", th.kind, i, fault, p, p[max(0, len(p)-60):])
		}
	}
	if th.largest > maxSlackPart {
		t.Errorf("%s: got a part of %d characters, want at most %d", th.kind, th.largest, maxSlackPart)
	}
}

// findAnswer waits for the thread's run and returns its answer.
func (w *longSlack) findAnswer(t *testing.T, th *longThread) (answer string) {
	t.Helper()
	w.sessions(t, "the answer about "+th.kind, func(list []core.Session) bool {
		for _, s := range list {
			if s.MessageCount != 2 || s.Status != core.SessionIdle {
				continue
			}
			all := apptest.ListMessages(t, w.house.Client, s.ID)
			if strings.Contains(all[0].Content, "["+th.kind+"]") {
				answer = all[1].Content
			}
		}
		return answer != ""
	})
	return answer
}

// compareParts checks that the parts join to the text. A part may repeat the opening of a code
// block or the header of a table, and close a code block; line breaks between parts are not shown.
func compareParts(parts []string, text string) error {
	for i, p := range parts {
		text = strings.TrimLeft(text, "\n")
		at := slices.IndexFunc(withoutRepeats(p), func(body string) bool { return body != "" && strings.HasPrefix(text, body) })
		if at < 0 {
			return fmt.Errorf("part %d of %d begins with %.80q, want %.80q", i, len(parts), p, text)
		}
		text = text[len(withoutRepeats(p)[at]):]
	}
	if text = strings.Trim(text, "\n"); text != "" {
		return fmt.Errorf("after %d parts %d bytes are missing: %.80q", len(parts), len(text), text)
	}
	return nil
}

var (
	partFence = regexp.MustCompile("^```[a-z]*$")
	partRule  = regexp.MustCompile(`^\|[-:| ]+\|$`)
)

// withoutRepeats returns what the part may be without what it repeats and closes.
func withoutRepeats(part string) []string {
	lines := strings.Split(strings.Trim(part, "\n"), "\n")
	starts, ends := []int{0}, []int{len(lines)}
	if partFence.MatchString(lines[0]) {
		starts = append(starts, 1)
	}
	if len(lines) > 1 && partRule.MatchString(lines[1]) {
		starts = append(starts, 2)
	}
	if lines[len(lines)-1] == "```" {
		ends = append(ends, len(lines)-1)
	}
	var bodies []string
	for _, from := range starts {
		for _, to := range ends {
			bodies = append(bodies, strings.Trim(strings.Join(lines[from:max(from, to)], "\n"), "\n"))
		}
	}
	return bodies
}

// unbalanced says what a reader would see broken in the part; empty for nothing.
func unbalanced(part string) string {
	inFence, row := false, 0
	lines := strings.Split(part, "\n")
	for i, l := range lines {
		switch {
		case partFence.MatchString(l):
			inFence, row = !inFence, 0
		case inFence || !strings.HasPrefix(l, "|"):
			row = 0
		default:
			if row++; row == 1 && (i+1 == len(lines) || !partRule.MatchString(lines[i+1])) {
				return "a table without its header"
			}
			if row > 101 {
				return "a table of more than 100 rows"
			}
		}
	}
	if inFence {
		return "an open code block"
	}
	return ""
}

// Long answers are complete in Slack, in parts that Slack takes and of which each is whole by
// itself, both as streams and where Slack has none. An answer notifies nobody.
func TestSlackLong(t *testing.T) {
	t.Parallel()
	size := apptest.ChooseSize(24_000, 60_000)
	answers := longAnswers(size)
	var worlds []*longSlack
	t.Run("ways", func(t *testing.T) {
		for _, way := range []string{"streams", "posts and edits"} {
			w := &longSlack{}
			worlds = append(worlds, w)
			t.Run(way, func(t *testing.T) {
				t.Parallel()
				w.start(t, answers)
				if way != "streams" {
					w.Inject(fakeslack.Fault{Method: "chat.startStream", Error: "feature_not_enabled"})
				}
				w.ask(t, answers)
				for _, th := range w.threads {
					w.check(t, th)
				}
				w.checkCalls(t, way)
			})
		}
	})
}

// start starts Slack and a Bobbin whose model gives the answers.
func (w *longSlack) start(t *testing.T, answers []longAnswer) {
	t.Helper()
	say := func(question string) string {
		for _, a := range answers {
			if strings.Contains(question, "["+a.kind+"]") {
				return a.text
			}
		}
		return "nothing"
	}
	model := apptest.NewProvider(t, provider.Options{Say: say, Pieces: 8, Hold: w.holdPiece})
	w.workspace = newWorkspace(t, func(s ...apptest.Setting) *apptest.Bobbin { return apptest.New(t, dbtest.MigratedSQLiteURL(t), s...) },
		apptest.WithModel("long", 200_000, 64_000, model), apptest.WithAgent("plain", "name: plain\nsystem_prompt: You answer.\n"),
		func(c *config.Config) { c.Slack.Agent = "plain" })
}

// checkCalls checks that Slack refused nothing, and that answers were shown in the way.
func (w *longSlack) checkCalls(t *testing.T, way string) {
	t.Helper()
	streamed := 0
	for _, c := range w.Calls("") {
		switch {
		case c.Error != "" && c.Error != "feature_not_enabled":
			t.Errorf("%s: Slack refused %s: %s", way, c.Method, c.Error)
		case c.Method == "chat.startStream" && c.Error == "":
			streamed++
		}
	}
	if (streamed > 0) != (way == "streams") {
		t.Errorf("%s: got %d streams", way, streamed)
	}
}
