package slackclients_test

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"bobbin/app/core"
	"bobbin/tests/slackfake/fakeslack"
)

// scenario is something that goes wrong between Slack and an app. Those that run alone disturb
// others.
type scenario struct {
	name  string
	alone bool
	run   func(t *testing.T, c *conversation)
}

// scenarios returns all of them. The last one ends the installation.
func scenarios() []scenario {
	return []scenario{
		{"the same message twice", false, sameMessageTwice},
		{"acknowledged while a run takes long", false, ackDuringRun},
		{"history with root and own replies", false, threadHistory},
		{"429 storm", false, rateLimitStorm},
		{"lost answers of Slack", false, lostAnswers},
		{"stream longer than its time", false, streamExpires},
		{"long answer with code and a table", false, longAnswer},
		{"edits and deletions both ways", false, editsAndDeletions},
		{"web and Slack decide at the same time", false, decisionRace},
		{"echo of own messages and changes", false, echoes},
		{"file with the official upload", false, fileUpload},
		{"two workspaces, one channel id", false, twoWorkspaces},
		{"Slack is away", true, slackAway},
		{"kill -9 before an event is acknowledged", true, killBeforeAck},
		{"kill -9 between a post and its ts", true, killAfterPost},
		{"the app is removed", true, appRemoved},
	}
}

// conversation is a channel with a thread that is a session.
type conversation struct {
	*bobbin

	channel, root, mark string
	session             core.SessionID
}

// post writes as the user into the thread, or begins it, and returns the message's ts.
func (c *conversation) post(t *testing.T, as *fakeslack.User, text string, more ...string) string {
	t.Helper()
	args := map[string]any{"channel": c.channel, "text": text + " " + c.mark}
	if c.root != "" {
		args["thread_ts"] = c.root
	}
	for i := 0; i+1 < len(more); i += 2 {
		args[more[i]] = more[i+1]
	}
	ts := c.people.call(t, as, "chat.postMessage", args).TS
	if c.root == "" {
		c.root = ts
	}
	return ts
}

// begin has the first turn of the thread, and waits until Slack shows it.
func (c *conversation) begin(t *testing.T, text string) {
	t.Helper()
	c.post(t, c.alice, c.ws.Bot().Mention()+" "+text)
	c.settle(t, 2)
	c.awaitThread(t, c.ws.Bot().Mention(), "answer to: "+text)
}

// settle waits until the session has so many messages and no run, and the thread shows the last
// one. It returns the messages.
func (c *conversation) settle(t *testing.T, n int) []core.Message {
	t.Helper()
	var all []core.Message
	poll(t, fmt.Sprintf("%d messages in %s", n, c.channel), func() bool {
		if c.session == "" {
			c.session = c.findSession(t)
		}
		if c.session == "" {
			return false
		}
		session, err := c.Session(t.Context(), c.session)
		must(t, err)
		page, err := c.Messages(t.Context(), c.session, core.MessageQuery{})
		must(t, err)
		all = page.Items
		return len(all) == n && session.Status == core.SessionIdle
	})
	return all
}

// findSession returns the session of the channel; empty if it has none.
func (c *conversation) findSession(t *testing.T) core.SessionID {
	t.Helper()
	page, err := c.Sessions(t.Context(), core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}})
	must(t, err)
	for _, s := range page.Items {
		if thread, err := c.SlackThread(t.Context(), s.ID); err == nil && thread.Channel == c.channel && thread.Team == c.ws.ID {
			return s.ID
		}
	}
	return ""
}

// awaitThread waits until the messages of the thread begin with these words, and checks that
// Slack's client reads the same.
func (c *conversation) awaitThread(t *testing.T, want ...string) []fakeslack.Message {
	t.Helper()
	var got []fakeslack.Message
	fits := func() bool {
		return slices.EqualFunc(got, want, func(m fakeslack.Message, text string) bool { return strings.HasPrefix(m.Markdown(), text) })
	}
	defer func() {
		if t.Failed() {
			t.Logf("the thread has %q, want %q", texts(got), want)
		}
	}()
	c.await(t, "the thread of "+c.channel, func() bool {
		got = c.ws.Thread(c.channel, c.root)
		return fits() && !slices.ContainsFunc(got, func(m fakeslack.Message) bool { return m.Stream != nil && m.Stream.Open })
	})
	got = c.read(t)
	if !fits() {
		t.Errorf("Slack's client reads %q, want %q", texts(got), want)
	}
	return got
}

// read returns the thread as Slack's client reads it.
func (c *conversation) read(t *testing.T) []fakeslack.Message {
	t.Helper()
	return c.people.call(t, c.alice, "conversations.replies", map[string]any{"channel": c.channel, "ts": c.root}).Messages
}

func texts(list []fakeslack.Message) []string {
	var all []string
	for _, m := range list {
		text := m.Markdown()
		all = append(all, text[:min(len(text), 80)])
	}
	return all
}

// runCount returns how many runs the session had.
func (c *conversation) runCount(t *testing.T) int {
	t.Helper()
	page, err := c.Runs(t.Context(), c.session, core.PageQuery{Limit: core.MaxPageLimit})
	must(t, err)
	return len(page.Items)
}

// web sends a message of the web and waits for its answer.
func (c *conversation) web(t *testing.T, text string) {
	t.Helper()
	if _, err := c.SendAndWait(t.Context(), webMessage(c.session, text)); err != nil {
		t.Fatal(err)
	}
}

// Each event comes twice, a mention as two events, and a gesture as two messages: one turn, one
// reply.
func sameMessageTwice(t *testing.T, c *conversation) {
	text := c.ws.Bot().Mention() + " once"
	c.post(t, c.alice, text, "client_msg_id", "gesture-1")
	c.post(t, c.alice, text, "client_msg_id", "gesture-1")
	must(t, c.WaitDelivered(t.Context()))
	c.settle(t, 2)
	if n := c.runCount(t); n != 1 {
		t.Errorf("got %d runs, want 1", n)
	}
	c.awaitThread(t, text, text, "answer to: once")
}

// What Slack sends is acknowledged, and other threads are answered, while the model takes its time.
func ackDuringRun(t *testing.T, c *conversation) {
	g := c.gates.add(c.mark, 1)
	c.post(t, c.alice, c.ws.Bot().Mention()+" take your time")
	<-g.asked
	c.post(t, c.bob, "meanwhile")
	c.await(t, "the acknowledgments", func() bool {
		n := 0
		for _, d := range c.Server.Deliveries() {
			if d.Acknowledged() {
				n++
			}
		}
		return n >= 3 // mention and message, reply
	})
	close(g.open)
	c.settle(t, 4)
}

// The thread's root and our own earlier replies are in the prompt of the first mention.
func threadHistory(t *testing.T, c *conversation) {
	c.post(t, c.bob, "the root says red")
	_, err := c.ws.Bot().Send(c.channel, fakeslack.Message{ThreadTS: c.root, Text: "an own earlier reply"})
	must(t, err)
	c.post(t, c.bob, "a reply says tall")
	c.post(t, c.alice, c.ws.Bot().Mention()+" and?")
	all := c.settle(t, 5)
	var roles []core.Role
	for _, m := range all {
		roles = append(roles, m.Role)
	}
	if !strings.HasPrefix(all[0].Content, "the root") || all[1].Content != "an own earlier reply" ||
		!slices.Equal(roles, []core.Role{core.RoleUser, core.RoleAssistant, core.RoleUser, core.RoleUser, core.RoleAssistant}) {
		t.Errorf("got %v %+v", roles, all)
	}
}

// Posts that Slack refuses for their rate come later, in order.
func rateLimitStorm(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.Inject(fakeslack.Fault{Method: "chat.postMessage", Channel: c.channel, Times: 3, RetryAfter: time.Second})
	want := []string{c.ws.Bot().Mention(), "answer to: hello"}
	for i := range 2 {
		c.web(t, fmt.Sprintf("question %d", i))
		want = append(want, fmt.Sprintf("question %d", i), fmt.Sprintf("answer to: question %d", i))
	}
	c.awaitThread(t, want...)
}

// A post, the start of a stream and its end whose answers are lost are in Slack once.
func lostAnswers(t *testing.T, c *conversation) {
	for _, method := range []string{"chat.startStream", "chat.stopStream"} {
		c.Inject(fakeslack.Fault{Method: method, Channel: c.channel, Times: 1, LoseAnswer: true})
	}
	c.begin(t, "hello")
	c.Inject(fakeslack.Fault{Method: "chat.postMessage", Channel: c.channel, Times: 1, LoseAnswer: true}) // Bobbin's, from here on
	c.web(t, "from the web")
	c.awaitThread(t, c.ws.Bot().Mention(), "answer to: hello", "from the web", "answer to: from the web")
}

// A stream that Slack ends goes on in another post; nothing of the text is lost.
func streamExpires(t *testing.T, c *conversation) {
	g := c.gates.add(c.mark, 2)
	c.post(t, c.alice, c.ws.Bot().Mention()+" tell me at length")
	<-g.asked // half of the answer is written
	c.await(t, "the stream", func() bool { return len(c.ws.Thread(c.channel, c.root)) > 1 })
	c.clock.advance(6 * time.Minute)
	close(g.open)
	c.checkLong(t)
}

// A long answer is whole, in parts that Slack takes, of which each is balanced.
func longAnswer(t *testing.T, c *conversation) {
	c.post(t, c.alice, c.ws.Bot().Mention()+" tell me at length")
	c.checkLong(t)
}

// checkLong checks the parts of the long answer as Slack's client reads them.
func (c *conversation) checkLong(t *testing.T) {
	t.Helper()
	c.settle(t, 2)
	c.await(t, "the end of the answer", func() bool {
		all := c.ws.Thread(c.channel, c.root)
		return strings.HasSuffix(all[len(all)-1].Markdown(), "The end.")
	})
	lines, rows := 0, 0
	for i, m := range c.read(t)[1:] {
		text := m.Markdown()
		if strings.Count(text, "```")%2 != 0 || utf8.RuneCountInString(text) > 12_000 || strings.Contains(text, "<!here>") {
			t.Errorf("part %d has %d characters: %.60q … %q", i, utf8.RuneCountInString(text), text, text[max(0, len(text)-60):])
		}
		if at := strings.Index(text, "| row"); at >= 0 && !strings.HasSuffix(text[:at], "| a | b |\n|---|---|\n") {
			t.Errorf("part %d has a table without its header: %.60q", i, text)
		}
		for l := range strings.Lines(text) {
			switch {
			case strings.HasPrefix(l, "line "+strconv.Itoa(lines)+" of the code"):
				lines++
			case strings.HasPrefix(l, "| row "+strconv.Itoa(rows)+" |"):
				rows++
			}
		}
	}
	if lines != longLines || rows != longLines/2 {
		t.Errorf("got %d lines and %d rows in order, want %d and %d", lines, rows, longLines, longLines/2)
	}
}

// Edits and deletions of either side are on the other; an edit keeps its blocks.
func editsAndDeletions(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	reply := c.post(t, c.alice, "the pump is red")
	c.settle(t, 4)
	c.people.call(t, c.alice, "chat.update", map[string]any{"channel": c.channel, "ts": reply, "text": "the pump is blue"})
	poll(t, "the edit", func() bool { return c.settle(t, 4)[2].Content == "the pump is blue" })
	run, err := c.SendAsync(t.Context(), webMessage(c.session, "on the *web*"))
	must(t, err)
	c.settle(t, 6)
	c.awaitThread(t, c.ws.Bot().Mention(), "answer", "the pump is blue", "answer", "on the *web*", "answer")
	_, err = c.ReviseMessage(t.Context(), c.session, run.UserMessageID, "on **this** web")
	must(t, err)
	edited := c.awaitThread(t, c.ws.Bot().Mention(), "answer", "the pump is blue", "answer", "on **this** web", "answer")[4]
	if !strings.Contains(string(edited.Blocks), `"markdown"`) {
		t.Errorf("got the blocks %s, want markdown after an edit, too", edited.Blocks)
	}
	c.people.call(t, c.alice, "chat.delete", map[string]any{"channel": c.channel, "ts": reply})
	c.settle(t, 5)
	must(t, c.DeleteMessage(t.Context(), c.session, run.UserMessageID))
	c.awaitThread(t, c.ws.Bot().Mention(), "answer", "answer", "answer")
	if n := c.runCount(t); n != 3 {
		t.Errorf("got %d runs, want none for edits and deletions", n)
	}
}

// A click and a decision on the web at the same time are one decision, and the buttons go.
func decisionRace(t *testing.T, c *conversation) {
	c.post(t, c.alice, c.ws.Bot().Mention()+" use the tool")
	hasButtons := func(m fakeslack.Message) bool { return strings.Contains(string(m.Blocks), core.SlackActionApprove) }
	ts := ""
	c.await(t, "the buttons", func() bool {
		all := c.ws.Thread(c.channel, c.root)
		if i := slices.IndexFunc(all, hasButtons); i >= 0 {
			ts = all[i].TS
		}
		return ts != ""
	})
	poll(t, "the session", func() bool { c.session = c.findSession(t); return c.session != "" })
	session, err := c.Session(t.Context(), c.session)
	must(t, err)
	run, err := c.Run(t.Context(), session.ActiveRunID)
	must(t, err)
	clicked := make(chan struct{})
	go func() {
		defer close(clicked)
		_, _ = c.alice.Click(c.channel, ts, core.SlackActionApprove, "") // the button may be gone already
	}()
	_, _ = c.Decide(t.Context(), run.ID, run.Approvals[0].ID, core.ApprovalDecision{}) // a conflict if the click was first
	<-clicked
	poll(t, "the end of the run", func() bool { run, err = c.Run(t.Context(), run.ID); must(t, err); return run.Status.Ended() })
	shown := ""
	c.await(t, "the decision in Slack", func() bool {
		for _, m := range c.ws.Thread(c.channel, c.root) {
			if m.TS == ts && !hasButtons(m) {
				shown = string(m.Blocks)
			}
		}
		return shown != ""
	})
	result := c.settle(t, 4)[2].Content
	if approved := strings.Contains(shown, "approved by"); approved == strings.Contains(shown, "denied by") || approved == strings.Contains(result, "not approved") {
		t.Errorf("Slack shows %s, and the tool answered %q: want one decision", shown, result)
	}
	if _, err := c.alice.Click(c.channel, ts, core.SlackActionApprove, ""); err == nil {
		t.Error("got a click after the decision, want no button")
	}
}

// What the bot posts, streams and edits comes back as events, and starts nothing.
func echoes(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.web(t, "from the web")
	all := c.awaitThread(t, c.ws.Bot().Mention(), "answer", "from the web", "answer")
	for _, m := range all[1:] {
		must(t, c.alice.Unfurl(c.channel, m.TS))
	}
	must(t, c.WaitDelivered(t.Context()))
	c.settle(t, 4)
	if n := c.runCount(t); n != 2 {
		t.Errorf("got %d runs, want 2", n)
	}
}

// A file that is shared as Slack's client does it is part of the message.
func fileUpload(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.people.call(t, c.alice, "files.uploadV2", map[string]any{"channel_id": c.channel, "thread_ts": c.root, "filename": "pump.txt", "content": "The pump is red.", "initial_comment": "see"})
	if all := c.settle(t, 4); len(all[2].Parts) != 1 || all[2].Parts[0].Name != "pump.txt" {
		t.Errorf("got the message %+v, want a file", all[2])
	}
}

// A workspace that Bobbin has no token of is nobody's, whatever its channels are called.
func twoWorkspaces(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	other := c.AddWorkspace("other")
	other.AddChannel(c.channel, "general")
	carl := other.AddUser("Carl", "")
	other.Install()
	ts := c.people.call(t, carl, "chat.postMessage", map[string]any{"channel": c.channel, "text": other.Bot().Mention() + " let me in"}).TS
	c.people.call(t, carl, "chat.postMessage", map[string]any{"channel": c.channel, "thread_ts": ts, "text": "and again"})
	must(t, c.WaitDelivered(t.Context()))
	c.post(t, c.alice, "go on")
	c.settle(t, 4)
	if got := other.Thread(c.channel, ts); len(got) != 2 {
		t.Errorf("the other workspace has %q", texts(got))
	}
}

// While Slack is away the web goes on; what is missing comes later, once.
func slackAway(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.Inject(fakeslack.Fault{Status: http.StatusServiceUnavailable})
	c.web(t, "are you there?")
	c.settle(t, 4)
	c.await(t, "a call of Slack", func() bool { calls := c.Calls(""); return calls[len(calls)-1].Error == "503" })
	c.ClearFaults()
	c.awaitThread(t, c.ws.Bot().Mention(), "answer", "are you there?", "answer")
}

// An event that comes while no process is there is handled by the next one.
func killBeforeAck(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.kill(t)
	c.post(t, c.alice, "while you were away")
	c.start(t)
	c.settle(t, 4)
	c.awaitThread(t, c.ws.Bot().Mention(), "answer", "while you", "answer")
}

// A process that dies after Slack took a post and before it knows its ts leaves one post.
func killAfterPost(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.Inject(fakeslack.Fault{Method: "chat.postMessage", Channel: c.channel, Times: 1, Delay: time.Hour, LoseAnswer: true})
	c.web(t, "from the web")
	c.await(t, "the post", func() bool { return len(c.ws.Thread(c.channel, c.root)) == 3 })
	c.kill(t)
	c.start(t)
	c.awaitThread(t, c.ws.Bot().Mention(), "answer", "from the web", "answer")
}

// After the app is removed nothing is posted, and the web goes on.
func appRemoved(t *testing.T, c *conversation) {
	c.begin(t, "hello")
	c.ws.Uninstall()
	must(t, c.WaitDelivered(t.Context()))
	c.web(t, "are you there?")
	c.await(t, "Slack's refusal", func() bool {
		calls := c.Calls("") // whichever comes first
		return calls[len(calls)-1].Error == "account_inactive"
	})
	c.settle(t, 4)
	if got := c.ws.Thread(c.channel, c.root); len(got) != 2 {
		t.Errorf("the thread has %q, want nothing more", texts(got))
	}
}
