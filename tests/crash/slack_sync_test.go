package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
	"bobbin/tests/slackfake/fakeslack"
)

// People write in threads of Slack and, to the same sessions, on the web, while Slack refuses
// calls (429), loses answers of calls and gets no answers to events, sends everything twice,
// and processes are killed. At the end both sides have every message once and in order, and
// nothing that Bobbin posted came back as a user's message.
//
// A person writes the next message in a thread when Slack has delivered the one before: Slack
// itself delivers an event that failed after those that follow it.
func TestShowSlackSync(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	dir := den.Temp(t)
	p, bobbins := place{dir, "sqlite://" + filepath.Join(dir, "bobbin.db")}, 1
	if sized(false, true) {
		p, bobbins = place{dir, dbtest.PostgresURL(t)}, 2
	}
	s := &slackSync{marks: regexp.MustCompile(`m\d+x\d+x`), began: time.Now()}
	s.slackWorld = newSlackWorld(t, p, bobbins, fakeslack.Options{RetryDelays: []time.Duration{0, 300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}},
		provider.Options{Window: modelWindow, Pieces: 3, Hold: holdSometimes, Say: func(question string) string {
			return "yes,\n" + strings.Repeat("this is a line\n", 5) + s.marks.FindString(question)
		}})
	s.lose = 0.05
	s.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
	s.openThreads(sized(3, 20))
	s.talk(sized(6, 50), sized(1, 8))
	s.settle(sized(2*time.Minute, 10*time.Minute))
	s.check()
}

// holdSometimes is how long a third of an answer takes: sometimes so long that it is streamed.
func holdSometimes(string) {
	longest := 100 * time.Millisecond
	if delays.IntN(4) == 0 {
		longest = 3 * time.Second
	}
	pause(context.Background(), randomDelay(longest))
}

// slackSync is one run of the test.
type slackSync struct {
	*slackWorld

	marks   *regexp.Regexp // of messages
	threads []*syncThread
	began   time.Time
}

// syncThread is a thread and its session.
type syncThread struct {
	*slackSync

	n       int
	person  *fakeslack.User
	channel string
	root    string
	session core.SessionID
	onWeb   []string // what was written on the web, in order
	inSlack []string // what was written in Slack, in order
}

// openThreads binds threads to sessions: one half begins in Slack, the other one on the web.
func (s *slackSync) openThreads(n int) {
	s.t.Helper()
	for i := range n {
		th := &syncThread{slackSync: s, n: i, person: s.ws.AddUser(fmt.Sprintf("Person %d", i), "")}
		th.channel = s.ws.AddChannel("", fmt.Sprintf("sync-%d", i)).ID
		s.threads = append(s.threads, th)
		if i%2 == 0 {
			th.beginInSlack()
		} else {
			th.beginOnWeb()
		}
	}
}

// beginInSlack opens the session by a mention.
func (th *syncThread) beginInSlack() {
	th.t.Helper()
	th.root = th.post("", th.ws.Bot().Mention()+" ")
	ctx, cancel := context.WithTimeout(th.t.Context(), patience)
	defer cancel()
	for th.session == "" && pause(ctx, 20*time.Millisecond) {
		th.database.Gorm.WithContext(ctx).Raw("SELECT session_id FROM slack_threads WHERE thread = ?", th.root).Scan(&th.session)
	}
	if th.session == "" {
		th.t.Fatalf("the thread in %s has no session after %s", th.channel, patience)
	}
}

// beginOnWeb attaches a session to a thread that was there before.
func (th *syncThread) beginOnWeb() {
	th.t.Helper()
	root := must.Get(th.person.Post(th.channel, "a thread"))(th.t)
	c := th.client()
	session, err := client.Call(th.t.Context(), c, ops.CreateSession, ops.NewSession{})
	if err == nil {
		_, err = client.Call(th.t.Context(), c, ops.PutSlackThread, ops.NewSlackThread{
			InSession: ops.InSession{SessionID: session.ID}, Team: th.ws.ID, Channel: th.channel, Thread: root, Mode: core.SlackTwoWay,
		})
	}
	must.Do(th.t, err)
	th.root, th.session = root, session.ID
}

// mark returns a word that only one message has.
func (th *syncThread) mark() string {
	return fmt.Sprintf("m%dx%dx", th.n, len(th.onWeb)+len(th.inSlack))
}

// post writes a message in Slack and returns its ts.
func (th *syncThread) post(thread, mention string) string {
	text := th.mark() + " from Slack"
	if delays.IntN(10) == 0 {
		text += " with the tool"
	}
	ts, err := th.person.Reply(th.channel, thread, mention+text)
	if err != nil {
		th.t.Error(err)
	}
	th.inSlack = append(th.inSlack, text)
	return ts
}

// send writes a message on the web until it is accepted.
func (th *syncThread) send(ctx context.Context, c *client.Client) {
	text := th.mark() + " from the web"
	m := core.SendMessage{SessionID: th.session, Content: text, Source: core.SourceWeb, Author: "Webster", ClientMessageID: th.mark()}
	for {
		_, err := c.SendAsync(ctx, m)
		if err == nil {
			th.onWeb = append(th.onWeb, text)
			return
		}
		var problem *client.ProblemError
		if errors.As(err, &problem) && problem.Status < http.StatusInternalServerError || !pause(ctx, 50*time.Millisecond) {
			th.t.Errorf("%s was not accepted: %v", text, err)
			return
		}
	}
}

// talk writes so many messages in each thread, on both sides, and disturbs everything until most
// of the posts are in Slack.
func (s *slackSync) talk(each, kills int) {
	s.t.Helper()
	var people, weather sync.WaitGroup
	for _, th := range s.threads {
		people.Go(func() { th.talk(s.t.Context(), each) })
	}
	calm := make(chan struct{})
	weather.Go(func() { s.disturb(calm) })
	for range kills {
		pause(s.t.Context(), time.Second+randomDelay(sized(4*time.Second, 12*time.Second)))
		s.restart(false, randomDelay(sized(time.Second, 4*time.Second)))
	}
	people.Wait()
	for !s.t.Failed() && s.postsMissing() && pause(s.t.Context(), 200*time.Millisecond) {
	}
	close(calm)
	weather.Wait()
	s.ClearFaults()
}

// postsMissing reports whether more than a quarter of the posts is missing.
func (s *slackSync) postsMissing() bool {
	posts, wanted := 0, 0
	for _, th := range s.threads {
		posts += len(th.ws.Posts(th.channel))
		wanted += len(th.inSlack) + 2*len(th.onWeb)
	}
	return posts < wanted*3/4
}

// talk writes messages on both sides until there are so many.
func (th *syncThread) talk(ctx context.Context, each int) {
	c := th.client()
	for len(th.onWeb)+len(th.inSlack) < each && ctx.Err() == nil && !th.t.Failed() {
		if delays.IntN(2) == 0 {
			th.send(ctx, c)
		} else {
			if err := th.ws.WaitDeliveredFrom(ctx, th.channel); err != nil {
				return
			}
			th.post(th.root, "")
		}
		pause(ctx, randomDelay(sized(600*time.Millisecond, 3*time.Second)))
	}
}

// disturb lets some of the next calls of a method fail, again and again, until calm is closed.
func (s *slackSync) disturb(calm <-chan struct{}) {
	methods := []string{"chat.postMessage", "chat.postMessage", "chat.postMessage", "chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "conversations.replies"}
	for {
		f := fakeslack.Fault{Method: methods[delays.IntN(len(methods))], Times: 1 + delays.IntN(len(s.threads))}
		switch delays.IntN(4) {
		case 0, 1:
			f.RetryAfter = time.Second
		case 2:
			f.Status = http.StatusBadGateway
		default:
			f.LoseAnswer = true
		}
		s.ClearFaults()
		s.Inject(f)
		select {
		case <-calm:
			return
		case <-time.After(randomDelay(3 * time.Second)):
		}
	}
}

// normalize leaves out what Slack's formatting changes.
func normalize(text string) string { return strings.Join(strings.Fields(text), " ") }

// How events are sent: a message that mentions the bot has two.
const (
	eventsPerSecond   = 50
	messagesPerSecond = eventsPerSecond / 2
	ackChannels       = 25
	messagesPerThread = 4
)

// Slack sends 50 events a second, while the model takes a minute for each answer and Bobbin is
// restarted, once gracefully and once by SIGKILL. What was acknowledged, and what was not and
// came again, is in its session once.
func TestSlackAck(t *testing.T) {
	t.Parallel()
	dir := den.Temp(t)
	t.Run("sqlite", func(t *testing.T) { playSlackAck(t, place{dir, "sqlite://" + filepath.Join(dir, "bobbin.db")}) })
	if sized(false, true) { // one after the other: each has the machine for itself
		t.Run("postgres", func(t *testing.T) { playSlackAck(t, place{den.Temp(t), dbtest.PostgresURL(t)}) })
	}
}

func playSlackAck(t *testing.T, p place) {
	done := make(chan struct{})
	release := sync.OnceFunc(func() { close(done) })
	t.Cleanup(release)
	slack := fakeslack.Options{RetryDelays: sized([]time.Duration{0, time.Second, 5 * time.Second}, []time.Duration{0, time.Minute, 5 * time.Minute})}
	k := &slackAck{slackWorld: newSlackWorld(t, p, 1, slack, provider.Options{Window: modelWindow, Hold: func(string) {
		select {
		case <-done:
		case <-time.After(time.Minute):
		}
	}})}
	k.people = []*fakeslack.User{k.ws.AddUser("Alice", ""), k.ws.AddUser("Bob", "")}
	for i := range ackChannels {
		k.channels = append(k.channels, k.ws.AddChannel("", fmt.Sprintf("ack-%d", i)).ID)
	}
	length := sized(3*time.Second, time.Minute)
	var writing sync.WaitGroup
	writing.Go(func() { k.write(length) })
	for _, graceful := range sized([]bool{false}, []bool{true, false}) {
		pause(t.Context(), length/3)
		k.restart(graceful, 0)
	}
	writing.Wait()
	release()
	k.settle(sized(2*time.Minute, 10*time.Minute))
	k.check()
}

// slackAck is one run of the test.
type slackAck struct {
	*slackWorld

	people   []*fakeslack.User
	channels []string
	sent     []string // client_message_id of all messages
}

// write writes messages at an even pace: in each channel threads of some messages.
func (k *slackAck) write(length time.Duration) {
	tick := time.NewTicker(time.Second / messagesPerSecond)
	defer tick.Stop()
	roots := make([]string, len(k.channels))
	for n := range int(length.Seconds()) * messagesPerSecond {
		channel := n % len(k.channels)
		if n/len(k.channels)%messagesPerThread == 0 {
			roots[channel] = ""
		}
		text := fmt.Sprintf("%s message %d", k.ws.Bot().Mention(), n)
		ts, err := k.people[n%len(k.people)].Reply(k.channels[channel], roots[channel], text)
		if err != nil {
			k.t.Error(err)
			return
		}
		if roots[channel] == "" {
			roots[channel] = ts
		}
		k.sent = append(k.sent, k.ws.ID+"/"+k.channels[channel]+"/"+ts)
		<-tick.C
	}
}

// check wants every event to be acknowledged, and every message in a session once.
func (k *slackAck) check() {
	k.t.Helper()
	for _, d := range k.Deliveries() {
		if !d.Acknowledged() {
			k.t.Errorf("event %s (%s) is lost: %+v", d.ID, d.Type, d.Attempts)
		}
	}
	var stored []string
	err := k.database.Gorm.WithContext(k.t.Context()).Raw("SELECT client_message_id FROM messages WHERE role = 'user' ORDER BY client_message_id").Scan(&stored).Error
	must.Do(k.t, err)
	slices.Sort(k.sent)
	slices.Sort(stored)
	if d := differ(k.sent, stored); len(d.missing)+len(d.doubled)+len(d.strange) > 0 {
		k.t.Errorf("of %d messages: missing %q, doubled %q, unexplained %q", len(k.sent), d.missing, d.doubled, d.strange)
	}
}
