package compaction_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// long reports whether the long forms of what is shown run (make show-…).
func long() bool { return os.Getenv("BOBBIN_TEST_LONG") == "1" }

// backlog is a conversation that was imported, and what came of it.
type backlog struct {
	*world
	tokens, window int

	mu      sync.Mutex
	seen    strings.Builder // what the summarizer was shown; guarded by mu
	waits   []time.Duration // of the prompts meanwhile
	longest time.Duration

	meanwhile int // reports of prompts that leave messages out
}

// callTime is how long the summarizer takes.
const callTime = 3 * time.Second

// newBacklog returns a conversation of about that many tokens.
func newBacklog(t *testing.T, policy string, tokens, window int) *backlog {
	t.Helper()
	b := &backlog{world: newWorld(t, core.ContextSettings{Policy: policy}, window), tokens: tokens, window: window}
	b.writer.WithInfo(llm.Info{Name: "writer", Provider: "scripted", Window: window, MaxOutput: window / 8})
	b.writer.Add(llmtest.Step{Repeat: true, From: func(req llm.Request) llmtest.Step {
		<-time.After(callTime)
		b.mu.Lock()
		defer b.mu.Unlock()
		_, text, _ := strings.Cut(req.Messages[0].Content, "<transcript>\n")
		b.seen.WriteString(text)
		return llmtest.Say("## Goal\nThe release of Friday needs another look at the tables before anybody ships.\n\n## Facts\n" +
			"- Each message says the same in another order: the tables, the look, the Friday, and that nobody ships before. Nothing was decided, no date was moved, " +
			"and whoever reads this learns little beside what the numbers of the messages tell.\n\n## To look up\n" + numbersOf(text))
	}})
	random := seed.Fixed(uint64(tokens), uint64(window))
	for size := 0; size < tokens; {
		for _, role := range []core.Role{core.RoleUser, core.RoleAssistant} {
			words := make([]string, 30+random.IntN(400))
			for i := range words {
				words[i] = []string{"the", "release", "of", "Friday", "needs", "another", "look", "at", "tables", "before", "anybody", "ships"}[random.IntN(12)]
			}
			m := b.said(role, fmt.Sprintf("message %d: %s.", len(b.Messages)+1, strings.Join(words, " ")))
			b.add(m)
			size += m.TokenCount
		}
	}
	return b
}

// numbersOf returns the numbers of up to eighty messages of the transcript.
func numbersOf(transcript string) string {
	begins := regexp.MustCompile(`(?m)^\[\d+\]`).FindAllString(transcript, -1)
	step := max((len(begins)+79)/80, 1)
	var numbers []string
	for i := 0; i < len(begins); i += step {
		numbers = append(numbers, begins[i])
	}
	return strings.Join(numbers, ", ")
}

// talk imports nothing more, and has a user ask something every few seconds until nothing
// is left to be summarized.
func (b *backlog) talk() {
	b.bubble(func() {
		for quiet := 0; quiet < 3; {
			b.checkReport()
			b.ask("and what is next?")
			before, begun := len(b.writer.Requests()), time.Now()
			b.fit()
			b.waits = append(b.waits, time.Since(begun))
			b.longest = max(b.longest, time.Since(begun))
			b.add(b.said(core.RoleAssistant, "We go on."))
			b.endRun()
			b.keeper.Enqueue(b.scope(), b.Session.ID)
			<-time.After(20 * time.Second)
			synctest.Wait()
			if quiet++; len(b.writer.Requests()) > before {
				quiet = 0
			}
		}
	})
}

// checkReport wants the report, the prompt and the dry run to show the prompt that is sent while the
// backlog is summarized call by call.
func (b *backlog) checkReport() {
	b.t.Helper()
	r := b.report()
	if slices.ContainsFunc(r.Reasons, func(s string) bool { return strings.HasPrefix(s, "the next message first") }) {
		return // one call is enough
	}
	view := must.Get(b.control().Prompt(b.t.Context(), b.scope(), b.Session.ID, core.PlanPreview{}))(b.t)
	ask := core.PlanPreview{Content: "and what is next?", Tokens: 9}
	plan := must.Get(b.control().DryRun(b.t.Context(), b.scope(), b.Session.ID, ask))(b.t)
	for name, used := range map[string]int{"report": r.Used, "prompt": view.Tokens, "dry run": plan.Tokens, "its report": plan.Context.Used} {
		if used > r.Usable {
			b.t.Errorf("the %s has %d tokens, want at most %d", name, used, r.Usable)
		}
	}
	if left := plan.Context.Coverage.LeftOut; left > 0 {
		b.meanwhile++
		if len(r.Reasons) != 1 || 4*plan.Tokens < 2*r.Trigger || plan.Summarize == nil || plan.Summarize.When != core.WhenBackground {
			b.t.Errorf("%d left out: got reasons %q, %d tokens, a summary %+v, want one reason, the window filled, and the summary beside it", left, r.Reasons, plan.Tokens, plan.Summarize)
		}
	}
}

// shown returns which part of the words behind the cursor the summarizer was shown, and of
// how many words.
func (b *backlog) shown() (part float64, words int) {
	session, _, log := b.now()
	seen, text := 0, b.seen.String()
	for _, m := range log {
		if m.Seq > session.SummaryThroughSeq {
			break
		}
		n := len(strings.Fields(m.Content))
		words += n
		if strings.Contains(text, fmt.Sprintf("[%d] %s: %s", m.Seq, m.Role, m.Content)) {
			seen += n
		}
	}
	return float64(seen) / float64(max(words, 1)), words
}

// A backlog is summarized call by call: the summarizer sees every word that the summary
// covers, paid work is kept, and a user who writes meanwhile waits for the call at
// hand. The clock is that of testing/synctest: a call takes exactly three seconds.
func TestShowBacklog(t *testing.T) {
	t.Parallel()
	sizes, policies := []int{125_000}, []string{"window"}
	if long() {
		sizes, policies = append(sizes, 500_000, 2_000_000), []string{"window", "sliding", "ratio"}
	}
	table := fmt.Sprintf("%-8s %-10s %-8s %-9s %-10s %-8s %-9s %-12s %s\n", "policy", "tokens", "window", "messages", "words", "seen", "calls", "thrown away", "longest wait of a message")
	for _, tokens := range sizes {
		for _, window := range []int{8_192, 131_072} {
			for _, policy := range policies {
				if policy != "window" && tokens > 125_000 {
					continue
				}
				b := newBacklog(t, policy, tokens, window)
				b.talk()
				part, words := b.shown()
				_, versions, _ := b.now()
				calls := len(b.writer.Requests())
				lost := calls - len(versions)
				table += fmt.Sprintf("%-8s %-10d %-8d %-9d %-10d %-8s %-9d %-12d %s\n", policy, tokens, window, len(b.Messages), words, fmt.Sprintf("%.2f %%", 100*part), calls, lost, b.longest)
				r := b.report()
				if window == 8_192 && b.meanwhile == 0 {
					t.Errorf("%s, %d tokens: no report while messages are left out", policy, tokens)
				}
				if part < 0.99 || lost != 0 || b.longest > callTime+time.Second || r.Used > r.Trigger && r.Trigger > 0 {
					t.Errorf("%s, %d tokens, window %d: seen %.4f, %d thrown away, waited %s, %d tokens used", policy, tokens, window, part, lost, b.longest, r.Used)
				}
				for _, v := range versions {
					if v.Model == "" || v.Note != "" || v.MessagesShortened > 0 {
						t.Errorf("version %d: model %q, note %q, %d shortened", v.Version, v.Model, v.Note, v.MessagesShortened)
					}
				}
			}
		}
	}
	t.Log("\nA backlog, call by call (a call takes 3 s)\n" + table)
}

// What was imported is summarized in the background whatever the timing, also that of ratio; the
// policy off makes no summary.
func TestImportIsSummarized(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"sliding": 1, "ratio": 1, "off": 0} {
		w := grown(t, core.ContextSettings{Policy: policy}, 6_000)
		w.writer.Add(always(notes))
		w.endRun()
		w.bubble(func() {
			w.keeper.Enqueue(w.scope(), w.Session.ID)
			synctest.Wait()
		})
		if session, _, _ := w.now(); session.SummaryVersion != want {
			t.Errorf("%s: got version %d, want %d", policy, session.SummaryVersion, want)
		}
	}
}
