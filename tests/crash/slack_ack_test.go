package crash_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/slackfake/fakeslack"
)

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
	if d := compare(k.sent, stored); len(d.missing)+len(d.doubled)+len(d.strange) > 0 {
		k.t.Errorf("of %d messages: missing %q, doubled %q, unexplained %q", len(k.sent), d.missing, d.doubled, d.strange)
	}
}
