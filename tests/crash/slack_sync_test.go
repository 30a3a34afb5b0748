package crash_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/process"
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
	if apptest.IsLong() {
		p, bobbins = place{dir, dbtest.PostgresURL(t)}, 2
	}
	s := &slackSync{marks: regexp.MustCompile(`m\d+x\d+x`), began: time.Now()}
	s.slackWorld = newSlackWorld(t, p, bobbins, fakeslack.Options{RetryDelays: []time.Duration{0, 300 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second}},
		provider.Options{Window: modelWindow, Pieces: 3, Hold: holdSometimes, Say: func(question string) string {
			return "yes,\n" + strings.Repeat("this is a line\n", 5) + s.marks.FindString(question)
		}})
	s.lose = 0.05
	s.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
	s.openThreads(apptest.ChooseSize(3, 20))
	s.talk(apptest.ChooseSize(6, 50), apptest.ChooseSize(1, 8))
	s.settle(apptest.ChooseSize(2*time.Minute, 10*time.Minute))
	s.check()
}

// holdSometimes is how long a third of an answer takes: sometimes so long that it is streamed.
func holdSometimes(string) {
	longest := 100 * time.Millisecond
	if shared.IntN(4) == 0 {
		longest = 3 * time.Second
	}
	process.Pause(context.Background(), randomDelay(longest))
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
	process.Await(th.t, "the session of the thread in "+th.channel, func() bool {
		th.database.Gorm.WithContext(th.t.Context()).Raw("SELECT session_id FROM slack_threads WHERE thread = ?", th.root).Scan(&th.session)
		return th.session != ""
	})
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
	if shared.IntN(10) == 0 {
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
		_, err := apptest.SendAsync(ctx, c, m)
		if err == nil {
			th.onWeb = append(th.onWeb, text)
			return
		}
		var problem *client.ProblemError
		if errors.As(err, &problem) && problem.Status < http.StatusInternalServerError || !process.Pause(ctx, 50*time.Millisecond) {
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
		process.Pause(s.t.Context(), time.Second+randomDelay(apptest.ChooseSize(4*time.Second, 12*time.Second)))
		s.restart(randomDelay(apptest.ChooseSize(time.Second, 4*time.Second)))
	}
	people.Wait()
	for !s.t.Failed() && s.postsMissing() && process.Pause(s.t.Context(), 200*time.Millisecond) {
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
		if shared.IntN(2) == 0 {
			th.send(ctx, c)
		} else {
			if err := th.ws.WaitDeliveredFrom(ctx, th.channel); err != nil {
				return
			}
			th.post(th.root, "")
		}
		process.Pause(ctx, randomDelay(apptest.ChooseSize(600*time.Millisecond, 3*time.Second)))
	}
}

// disturb lets some of the next calls of a method fail, again and again, until calm is closed.
func (s *slackSync) disturb(calm <-chan struct{}) {
	methods := []string{"chat.postMessage", "chat.postMessage", "chat.postMessage", "chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "conversations.replies"}
	for {
		f := fakeslack.Fault{Method: methods[shared.IntN(len(methods))], Times: 1 + shared.IntN(len(s.threads))}
		switch shared.IntN(4) {
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
