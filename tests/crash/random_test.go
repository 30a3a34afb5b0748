package crash_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/records"
	"bobbin/tests/seed"
)

// The random test.
const (
	sessions     = 5
	defaultKills = 4                      // of each database; make show-crash has 200
	longestDelay = 150 * time.Millisecond // between what the killer waits for and the kill
)

// TestKilledAtRandomMoments: people talk in several sessions, with tools, queues,
// interrupts and summaries, while the process is killed again and again. In the
// end every message that was accepted is in the log once and answered once, in
// order, summaries are whole, and all sessions go on.
func TestKilledAtRandomMoments(t *testing.T) {
	t.Parallel()
	seed.SkipInCI(t)
	eachPlace(t, func(t *testing.T, p place) {
		c := newChaos(t, p)
		for kills := environmentInt(t, "BOBBIN_CRASH_KILLS", defaultKills); c.kills < kills; {
			c.round()
			if t.Failed() {
				t.FailNow() // more kills would only bury the first fault
			}
		}
		c.settle()
		c.verify()
		c.leave()
		c.verifyFeeds()
		c.bobbin.stop(t)
		c.report()
	})
}

// chaos is one run of the test.
type chaos struct {
	t        *testing.T
	dice     *rand.Rand
	place    place
	bobbin   *bobbin
	provider *provider.Server
	board    *board
	talk     *talk
	database *db.DB                      // open from settle on
	kept     map[core.SessionID][]string // summaries that were there after a kill
	sessions []core.SessionID
	began    time.Time
	leave    func() // ends all clients

	kills   int
	aimed   map[stage]int // kills by what the killer waited for
	restart []time.Duration
	found   findings
}

func newChaos(t *testing.T, p place) *chaos {
	c := &chaos{
		t: t, place: p, dice: dice(1_000_000), board: newBoard(), began: time.Now(),
		aimed: map[stage]int{}, kept: map[core.SessionID][]string{},
	}
	var err error
	c.provider, err = provider.New(provider.Options{Window: modelWindow, Overcount: 1.15, At: c.atProvider})
	must.Do(t, err)
	t.Cleanup(c.provider.Close)
	c.bobbin = newBobbin(t, p, c.provider.URL)
	c.bobbin.start(t)
	api := c.bobbin.client(t)
	c.talk = newTalk(t, api, c.board)
	ctx, cancel := context.WithCancel(t.Context())
	c.leave = func() {
		cancel()
		c.talk.senders.Wait()
		c.talk.watchers.Wait()
	}
	t.Cleanup(c.leave)
	for n := range sessions {
		s := must.Get(client.Call(ctx, api, ops.CreateSession, ops.NewSession{Title: fmt.Sprint("session ", n)}))(t)
		c.sessions = append(c.sessions, s.ID)
		c.talk.open(ctx, n, s.ID)
	}
	return c
}

// atProvider lets the provider take its time, so that there are moments to be
// killed in.
func (c *chaos) atProvider(p provider.Point, a provider.Asked) {
	c.board.provider(p, a)
	if p != provider.PointEnd {
		pause(context.Background(), randomDelay(25*time.Millisecond))
	}
}

// round kills the process at a random moment and starts it again.
func (c *chaos) round() {
	aim := aims[c.dice.IntN(len(aims))]
	// Most moments are soon after what was waited for: steps take a few milliseconds.
	x := c.dice.Float64()
	delay := time.Duration(x * x * x * float64(longestDelay))
	if aim == stageBoot && c.kills > 0 {
		c.spare(1)
		c.kill(aim, delay)
		must.Do(c.t, c.bobbin.Launch())
		pause(c.t.Context(), delay)
		c.kill(aim, 0)
	} else {
		c.spare(2)
		c.kill(c.wait(aim), delay)
	}
	// Now and then nobody opens the database before the restart does.
	if c.dice.IntN(2) > 0 {
		c.inspect()
	}
	began := time.Now()
	c.bobbin.start(c.t)
	c.restart = append(c.restart, time.Since(began))
}

// spare waits until no run is at work that has so many deaths: one with three executes
// alone, and one with four fails.
func (c *chaos) spare(deaths int) {
	c.t.Helper()
	d := c.place.open(c.t)
	defer func() { _ = d.Close() }() // only read
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for {
		var n int64
		err := d.Gorm.WithContext(ctx).Model(&models.Run{}).Where("status = 'running' AND deaths >= ?", deaths).Count(&n).Error
		must.Do(c.t, err)
		if n == 0 {
			return
		}
		if !pause(ctx, 5*time.Millisecond) {
			c.t.Fatalf("%d runs that outlived %d kills do not end", n, deaths)
		}
	}
}

// wait returns when a message comes to the stage, or when that takes too long; it
// returns what it has come to.
func (c *chaos) wait(aim stage) stage {
	if aim == stageIdle || aim == stageBoot {
		return stageIdle
	}
	often := 12
	if aim == stageSummary || aim == stageApply {
		often = 2
	}
	met := c.board.meet(aim, 1+c.dice.IntN(often))
	limit := time.NewTimer(2 * time.Second)
	defer limit.Stop()
	select {
	case <-met:
		return aim
	case <-limit.C:
		return stageIdle
	}
}

func (c *chaos) kill(aim stage, delay time.Duration) {
	pause(c.t.Context(), delay)
	c.bobbin.Kill()
	c.kills++
	c.aimed[aim]++
}

// settle lets everybody finish, and waits until nothing is left to be done.
func (c *chaos) settle() {
	c.t.Helper()
	c.talk.hush()
	c.database = dbtest.Open(c.t, c.place.database)
	ctx, cancel := context.WithTimeout(c.t.Context(), patience)
	defer cancel()
	for {
		var open []models.Run
		err := c.database.Gorm.WithContext(ctx).Where("status NOT IN ('succeeded', 'failed', 'canceled')").Find(&open).Error
		must.Do(c.t, err)
		if len(open) == 0 {
			break
		}
		if !pause(ctx, 20*time.Millisecond) {
			c.t.Fatalf("%d runs do not end; the first: %s in session %s, %s, attempt %d",
				len(open), open[0].ID, open[0].SessionID, open[0].Status, open[0].Attempt)
		}
	}
}

// report prints what was seen.
func (c *chaos) report() {
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(w, format+"\n", args...) }
	line("stage\tkills aimed at it")
	for _, s := range slices.Compact(slices.Clone(aims)) {
		line("%s\t%d", s, c.aimed[s])
	}
	f := c.found
	line("\nkills\t%d\tin %s", c.kills, time.Since(c.began).Round(time.Second))
	line("messages accepted\t%d\tof %d sent; the others' senders gave up, and none of those is half there", f.Accepted, len(c.talk.sent))
	line("… answered\t%d\tcanceled by a later message %d, failed %d", f.Answered, f.Canceled, f.Failed)
	line("… doubled\t%d", f.Doubled)
	line("… lost\t%d", f.Lost)
	line("runs resumed\t%d\tmost attempts of a run %d", f.Resumed, f.Attempts)
	line("messages in the log\t%d\tof them results of tools %d", f.Messages, f.Results)
	line("events\t%d\ttexts taken back on the screen %d", f.Events, f.dropped)
	line("summaries\t%d\tby a request %d, without the model %d", f.summaries, f.asked, f.fallbacks)
	line("… looked at after a kill\t%d\tall whole, after %d kills", f.inspected, f.inspections)
	line("provider\t%d\trequests, %d prompts refused as too long, largest %d of %d", c.provider.Requests(), c.provider.Rejected(), c.provider.Largest(), modelWindow)
	line("harmless refusals\t%v", c.talk.refused)
	p50, most := records.Quantiles(c.restart)
	line("start → ready\tmedian %s\tmost %s", p50, most)
	_ = w.Flush()
	c.t.Logf("%s\n%s", c.database.Dialect(), out.String())
}
