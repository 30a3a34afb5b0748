package branches_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/llm"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// usualInterleaved is how many sequences a normal run of the tests has; PostgreSQL gets the same
// part of them as of the other sequences. BOBBIN_INTERLEAVE_SEQUENCES is how many.
const usualInterleaved = 3

// A conversation with edits, new answers, deletions, appended messages, other models and crashes, and beside
// it two processes that make summaries. They go on call by call, in an order that the seed chooses. Every
// message reaches the model exactly once, verbatim or covered; the cursor never passes what was read.
func TestInterleave(t *testing.T) {
	t.Parallel()
	sequences := setting("BOBBIN_INTERLEAVE_SEQUENCES", usualInterleaved)
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		n := sequences
		if d.Gorm.Name() == "postgres" {
			n = max(1, n/postgresShare)
		}
		w := newWorld(t, d)
		w.options.SummaryTime = time.Minute // no thread is left behind, of which the schedule knows nothing
		w.agents = timings()
		for i := range n {
			w.interleaved(uint64(i))
			if w.violations > 10 {
				break
			}
		}
		w.checkShown()
	})
}

// timings are agents that summarize at different times.
func timings() map[string]core.Agent {
	llmOnly, few, fewer := "llm", 8, 3
	all := map[string]core.Agent{}
	for _, timing := range []string{"inline", "after_run", "background"} {
		all[timing] = core.Agent{Context: core.ContextSettings{Policy: "window", Strategy: &llmOnly, Timing: &timing}}
		all["few "+timing] = core.Agent{Context: core.ContextSettings{
			Policy: "sliding", WindowMessages: &few, MinRecentMessages: &fewer, MaxMessagesBeforeSummary: new(int), Timing: &timing,
		}}
	}
	for name, a := range all {
		a.Name, a.SystemPrompt, a.MaxIterations = name, "You are helpful.", 4
		all[name] = a
	}
	return all
}

// interleaved has a new conversation with two summarizers beside it.
func (w *world) interleaved(n uint64) {
	w.t.Helper()
	w.rand = seed.Rand(w.t, 1_000+2*n)
	w.trace = []string{fmt.Sprint("sequence ", n)}
	names := []string{"background", "background", "few background", "after_run", "few after_run", "inline"}
	made := must.Get(w.chat.CreateSession(w.t.Context(), tenant, core.Session{Agent: names[w.rand.IntN(len(names))], Title: "a talk"}))(w.t)
	k := newTalk(made.ID)
	w.talks = []*talk{k}
	s := &schedule{rand: seed.Rand(w.t, 1_001+2*n)}
	talker := &actor{name: "talker", weight: 1, act: func(*actor) { w.converse(k) }}
	talker.die = func() bool {
		if w.asked != nil && w.die != nil {
			w.die()
		}
		return w.asked != nil
	}
	s.actors = []*actor{talker, w.summarizer(s, "one", k, talker), w.summarizer(s, "two", k, talker)}
	w.others = s
	talker.born = func() { w.join(w.process(talker)) }
	talker.born()
	s.run()
	w.others = nil
	w.deaths += s.deaths
}

// process returns the keeper of an actor's process. Those that die leave their leases
// behind; mostly the next process of the name gives them back, else they end by then.
func (w *world) process(a *actor) *compaction.Compactor {
	w.t.Helper()
	if w.rand.IntN(10) > 0 {
		must.Do(w.t, w.sessions.FreeSummaries(w.t.Context(), a.name+"/"))
	} else if err := w.db.Gorm.Exec("UPDATE sessions SET summary_lease_until = '2000-01-01 00:00:00+00:00' WHERE summary_lease_owner LIKE ?", a.name+"/%").Error; err != nil {
		w.t.Fatal(err)
	}
	o := w.options
	o.Worker, o.Stores = a.name, pointed{w.others, o.Stores}.stores()
	return compaction.New(o)
}

// summarizer makes summaries until the conversation is over.
func (w *world) summarizer(s *schedule, name string, k *talk, talker *actor) *actor {
	var keeper *compaction.Compactor
	var cancel context.CancelFunc
	a := &actor{name: name, weight: 2}
	a.born = func() {
		a.ctx, cancel = context.WithCancel(w.t.Context())
		keeper = w.process(a)
	}
	a.die = func() bool {
		if cancel != nil {
			cancel()
		}
		return cancel != nil
	}
	a.act = func(*actor) {
		for a.born(); !talker.done; {
			var err error
			if w.rand.IntN(8) == 0 {
				_, err = keeper.Summarize(a.ctx, tenant, k.id, "")
			} else {
				err = keeper.SummarizeDue(a.ctx, tenant, k.id)
			}
			for _, allowed := range []error{errDied, context.Canceled, core.ErrConflict, core.ErrStale, core.ErrUnprocessable} {
				if errors.Is(err, allowed) {
					err = nil
				}
			}
			if err != nil {
				w.fault("summarizer %s: %v", name, err)
			}
			s.reborn()
			if s.point() != nil {
				s.reborn()
			}
		}
		cancel()
	}
	return a
}

// converse takes the conversation through some steps and checks after each.
func (w *world) converse(k *talk) {
	w.t.Helper()
	steps := []string{"send", "send", "send", "send", "send", "edit", "after", "regenerate", "select", "delete", "revise", "append", "append", "model"}
	early, violations := 8+w.rand.IntN(10), w.violations
	for i := range early + 12 + w.rand.IntN(16) {
		name := "send"
		if i >= early {
			name = steps[w.rand.IntN(len(steps))]
		}
		w.trace = append(w.trace, name)
		if w.moods = nil; w.rand.IntN(12) == 0 {
			w.moods = []string{"die"}
		}
		w.do(k, name)
		w.check(k, name)
		w.checkPrepared(k)
		if w.violations > violations {
			return
		}
	}
}

// append puts a question and its answer at the end without a run.
func (w *world) append(k *talk) {
	w.t.Helper()
	in := transfer.New(transfer.Options{Sessions: w.sessions, Messages: w.messages, Feed: silent{}, Counter: w.counter, Limits: transfer.Limits{Message: 1 << 20, Output: 1 << 20}})
	for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
		if _, _, err := in.Append(w.t.Context(), tenant, k.id, core.Message{Role: role, Content: w.text(10 + w.rand.IntN(80))}); err != nil {
			w.t.Errorf("append: %v\n%v", err, w.trace)
		}
		w.extend(k)
	}
}

// checkOnce wants every message of the conversation in the prompt exactly once, in its
// place or in the summary; or in a range that the prompt says is left out, where it did
// not wait for its summary. A summary that was made without the model does not name all
// that it covers.
func (w *world) checkOnce(k *talk, req llm.Request) {
	w.t.Helper()
	times, quoted := map[string]int{}, map[string]int{}
	for _, m := range req.Messages {
		for _, found := range mark.FindAllString(m.Content, -1) {
			times[found]++
		}
	}
	for _, found := range mark.FindAllString(strings.Join(req.System, "\n"), -1) {
		quoted[found]++
	}
	var less int
	err := w.db.Gorm.WithContext(w.t.Context()).Raw("SELECT COUNT(*) FROM session_summaries WHERE session_id = ? AND note LIKE '%fallback%'", k.id).Scan(&less).Error
	must.Do(w.t, err)
	out := leftOut(req)
	for _, id := range k.path {
		m := k.known[id]
		if k.deleted[id] {
			continue
		}
		told := slices.ContainsFunc(out, func(r [2]int64) bool { return r[0] <= m.Seq && m.Seq <= r[1] })
		for _, found := range marksOf(m) {
			verbatim, covered := times[found], quoted[found]
			if less > 0 {
				covered = min(covered, 1) // as the goal, and as what was asked
			}
			if n := verbatim + covered; n > 1 || n == 0 && less == 0 && !told || n > 0 && told {
				w.fault("message #%d is %d times in the prompt and %d times in its summary", m.Seq, verbatim, covered)
			}
		}
	}
}

// seqRange is a range in what a prompt says is left out of it.
var seqRange = regexp.MustCompile(`#(\d+)–#(\d+)`)

// leftOut returns the ranges of messages that the prompt says are left out.
func leftOut(req llm.Request) (ranges [][2]int64) {
	_, rest, _ := strings.Cut(strings.Join(req.System, "\n"), "messages are left out here because they do not fit: ")
	rest, _, _ = strings.Cut(rest, "]")
	for _, m := range seqRange.FindAllStringSubmatch(rest, -1) {
		from, _ := strconv.ParseInt(m[1], 10, 64)
		through, _ := strconv.ParseInt(m[2], 10, 64)
		ranges = append(ranges, [2]int64{from, through})
	}
	return ranges
}

// checkPrepared wants the summary that is prepared to say what it covers, all of it and
// nothing else, and to end on the path, behind the one in use.
func (w *world) checkPrepared(k *talk) {
	w.t.Helper()
	var ready []core.Summary
	must.Do(w.t, w.db.Gorm.WithContext(w.t.Context()).Where("session_id = ? AND state = 'prepared'", k.id).Find(&ready).Error)
	if len(ready) == 0 {
		return
	}
	v, s := ready[0], w.session(k.id)
	if len(ready) > 1 || v.ThroughSeq <= s.SummaryThroughSeq || !slices.Contains(k.path, v.ThroughID) {
		w.fault("got %d prepared, up to #%d, want one that ends on the path behind #%d", len(ready), v.ThroughSeq, s.SummaryThroughSeq)
	}
	said, covered := mark.FindAllString(v.Content, -1), 0
	for _, id := range k.path {
		m := k.known[id]
		if k.deleted[id] {
			continue
		}
		inside := m.Seq <= v.ThroughSeq
		if inside {
			covered++
		}
		for _, found := range marksOf(m) {
			if has := slices.Contains(said, found); has != inside && (has || !k.partial) {
				w.fault("message #%d: prepared up to #%d, says it: %v", m.Seq, v.ThroughSeq, has)
			}
		}
	}
	if covered != v.MessagesCovered {
		w.fault("prepared for %d messages, %d are on the path up to #%d", v.MessagesCovered, covered, v.ThroughSeq)
	}
}

// checkShown wants each kind of thing to have happened.
func (w *world) checkShown() {
	w.t.Helper()
	var used int
	must.Do(w.t, w.db.Gorm.WithContext(w.t.Context()).Raw("SELECT COUNT(activated_at) FROM session_summaries").Scan(&used).Error)
	if used == 0 || w.deaths == 0 || w.crashes == 0 || w.prompts == 0 {
		w.t.Errorf("got %d summaries, %d deaths, %d crashes, %d prompts: the test shows nothing", used, w.deaths, w.crashes, w.prompts)
	}
}
