package crash_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/tests/dbtest"
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
func TestShowSlackAck(t *testing.T) {
	t.Parallel()
	dir := den.Temp(t)
	t.Run("sqlite", func(t *testing.T) { showSlackAck(t, place{dir, "sqlite://" + filepath.Join(dir, "bobbin.db")}) })
	if sized(false, true) { // one after the other: each has the machine for itself
		t.Run("postgres", func(t *testing.T) { showSlackAck(t, place{den.Temp(t), dbtest.PostgresURL(t)}) })
	}
}

func showSlackAck(t *testing.T, p place) {
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
	held := k.count("SELECT COUNT(*) FROM runs WHERE status = 'running'")
	sent := k.Deliveries()
	release()
	k.settle(sized(2*time.Minute, 10*time.Minute))
	k.logTable(p, length, held, len(sent))
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
	if err != nil {
		k.t.Fatal(err)
	}
	slices.Sort(k.sent)
	slices.Sort(stored)
	if d := compare(k.sent, stored); len(d.missing)+len(d.doubled)+len(d.strange) > 0 {
		k.t.Errorf("of %d messages: missing %q, doubled %q, unexplained %q", len(k.sent), d.missing, d.doubled, d.strange)
	}
}

// afterStart is how long the first requests of a Bobbin that has started are counted apart: they
// come all at once, and nothing is cached.
const afterStart = 2 * time.Second

// isAway reports whether the time is in a restart, or just after it.
func (k *slackAck) isAway(at time.Time) bool {
	return slices.ContainsFunc(k.away, func(span [2]time.Time) bool {
		return at.After(span[0].Add(-time.Second)) && at.Before(span[1].Add(afterStart))
	})
}

// logTable prints how long the acknowledgments of the first events took: those that were sent
// while the model was at work.
func (k *slackAck) logTable(p place, length time.Duration, held, events int) {
	k.t.Helper()
	var all, between []time.Duration
	reasons := map[string]int{}
	lost := 0
	for _, d := range k.Deliveries()[:events] {
		for _, a := range d.Attempts {
			if a.Reason != "" {
				reasons[a.Reason]++
				continue
			}
			all = append(all, a.Took)
			if !k.isAway(a.At) {
				between = append(between, a.Took)
			}
		}
		if !d.Acknowledged() {
			lost++
		}
	}
	var b strings.Builder
	database, _, _ := strings.Cut(p.database, ":")
	fmt.Fprintf(&b, "%s: %d events in %s, %.0f a second; %d runs waited for the model at the end; restarts: %d, attempts that failed then: %v; events lost: %d\n\n",
		database, events, length, float64(events)/length.Seconds(), held, k.kills, reasons, lost)
	table := tabwriter.NewWriter(&b, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "\tacknowledged\tp50\tp99\tlongest")
	fmt.Fprintf(table, "all\t%s\n", quantiles(all))
	fmt.Fprintf(table, "but for restarts and the %s after them\t%s\n", afterStart, quantiles(between))
	_ = table.Flush() // to memory
	k.t.Logf("\n%s", b.String())
}

// quantiles are the cells of a table.
func quantiles(took []time.Duration) string {
	slices.Sort(took)
	at := func(share float64) time.Duration {
		if len(took) == 0 {
			return 0
		}
		return took[min(int(share*float64(len(took))), len(took)-1)].Round(100 * time.Microsecond)
	}
	return fmt.Sprintf("%d\t%s\t%s\t%s", len(took), at(0.5), at(0.99), at(1))
}
