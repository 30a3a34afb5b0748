package term_test

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// screen is a terminal that is high enough for everything: it understands what
// this package sends.
type screen struct {
	t        *testing.T
	width    int
	rows     [][]string // cells; the right half of a wide one is empty
	row, col int
	last     int      // the cell that was written last
	styles   []string // as they were switched on, with the text up to the next
}

func newScreen(t *testing.T, width int) *screen {
	t.Helper()
	return &screen{t: t, width: width, rows: [][]string{nil}}
}

// Write is part of io.Writer.
func (s *screen) Write(p []byte) (int, error) {
	text := string(p)
	for text != "" {
		if strings.HasPrefix(text, "\x1b[") {
			end := strings.IndexAny(text, "mAJKH")
			must.True(s.t, end >= 0, "a sequence is cut: %q", text)
			s.control(text[2:end], text[end])
			text = text[end+1:]
			continue
		}
		r := []rune(text)[0]
		s.put(r)
		text = text[len(string(r)):]
	}
	return len(p), nil
}

func (s *screen) control(argument string, command byte) {
	switch command {
	case 'm':
		s.styles = append(s.styles, argument+":")
	case 'A':
		n := 0
		if _, err := fmt.Sscan(argument, &n); err != nil || n > s.row {
			s.t.Fatalf("up by %q from row %d", argument, s.row)
		}
		s.row -= n
	case 'J':
		s.rows = s.rows[:s.row+1]
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	case 'K':
		s.rows[s.row] = s.rows[s.row][:min(s.col, len(s.rows[s.row]))]
	default:
		s.t.Fatalf("unexpected sequence %q", argument+string(command))
	}
}

func (s *screen) put(r rune) {
	switch {
	case r == '\n':
		s.row, s.col = s.row+1, 0
		if s.row == len(s.rows) {
			s.rows = append(s.rows, nil)
		}
		return
	case r == '\r':
		s.col = 0
		return
	case r < ' ' || r == 0x7f:
		s.t.Fatalf("control character %q on the screen", r)
	}
	if n := len(s.styles); n > 0 {
		s.styles[n-1] += string(r)
	}
	line := s.rows[s.row]
	width := runewidth.RuneWidth(r)
	if s.col > 0 && (width == 0 || strings.HasSuffix(line[s.last], "\u200d")) {
		s.join(r)
		return
	}
	if s.col+width > s.width {
		s.put('\n')
		line = s.rows[s.row]
	}
	for len(line) < s.col+width {
		line = append(line, "")
	}
	s.last = s.col
	line[s.col] = string(r)
	s.rows[s.row] = line
	s.col += width
}

// join adds r to the cell before; a variation selector may make that wide.
func (s *screen) join(r rune) {
	line := s.rows[s.row]
	line[s.last] += string(r)
	if runewidth.StringWidth(line[s.last]) > s.col-s.last {
		s.rows[s.row] = append(line[:s.col], "")
		s.col++
	}
}

// text returns what stands on the screen.
func (s *screen) text() string {
	var lines []string
	for _, row := range s.rows {
		lines = append(lines, strings.TrimRight(strings.Join(row, ""), " "))
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// widest returns the columns of the widest row.
func (s *screen) widest() int {
	n := 0
	for _, row := range s.rows {
		n = max(n, len(row))
	}
	return n
}

// styled returns the pieces of text that have a style.
func (s *screen) styled() []string {
	var out []string
	for _, piece := range s.styles {
		if !strings.HasPrefix(piece, "0:") {
			out = append(out, piece)
		}
	}
	return out
}

// flat is what a drawing says, on one line.
func flat(s *screen) string { return strings.Join(strings.Fields(s.text()), " ") }

// drawn draws at several widths, wants nothing to be wider than the terminal, and
// everything to be said at each of them.
func drawn(t *testing.T, draw func(w io.Writer, width int), says ...string) {
	t.Helper()
	for _, width := range []int{40, 80, 120} {
		s := newScreen(t, width)
		draw(s, width)
		if n := s.widest(); n >= width {
			t.Errorf("width %d: a row has %d columns:\n%s", width, n, s.text())
		}
		for _, want := range says {
			if !strings.Contains(flat(s), want) {
				t.Errorf("width %d: no %q in\n%s", width, want, s.text())
			}
		}
	}
}

// report is a context near its trigger.
func report() core.ContextReport {
	turns := 3
	return core.ContextReport{
		Model: "gpt-4o", Policy: "budget", Window: 128_000, Reserve: 4096, Usable: 123_904, Used: 90_000, TurnsLeft: &turns, Breaker: "open",
		Sections: []core.ContextPart{{Name: "summary", Tokens: 900}, {Name: "tail", Tokens: 89_100, Messages: 24}},
		Triggers: []core.TriggerStatus{{Name: "messages", Value: 24, Threshold: 30, Percent: 80}, {Name: "tokens", Value: 89_100, Threshold: 128_000, Percent: 69}},
		Coverage: core.Coverage{Messages: 49, Summarized: 25, Verbatim: 24}, Calibration: core.CalibrationView{Deviation: 0.1},
	}
}

// B5: the last summaries with before and after, why and when, whatever their state;
// turns left, how far the numbers can be trusted, and the breaker.
func TestDrawContextWhole(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	r := report()
	until := now.Add(90 * time.Second)
	r.OpenUntil, r.Failure, r.Summarizing = &until, "the model failed (auth)", true
	r.Prepared = &core.Summary{Version: 5, State: core.SummaryPrepared, MessagesCovered: 40, TokenCount: 900, Trigger: "tokens", Strategy: "llm"}
	r.Summaries = []core.Summary{
		{Version: 4, State: core.SummaryActive, MessagesCovered: 25, TokensBefore: 6200, TokenCount: 850, Trigger: "messages", Strategy: "llm", CreatedAt: now.Add(-3 * time.Hour)},
		{Version: 3, State: core.SummaryUndone, MessagesCovered: 30, TokenCount: 800, Note: "repeats version 1"},
		{Version: 2, Kind: core.SummaryRun, State: core.SummaryDropped, MessagesAdded: 12, TokenCount: 300},
		{Version: 1, State: core.SummaryErased},
	}
	r.Thoughts = &core.ThoughtsReport{Contract: "refuses", Kept: 12, Dropped: []core.ThoughtsGroup{{Reason: "changed", Count: 3, Detail: "the prompt before them has changed"}}}
	r.Sections = append(r.Sections, core.ContextPart{Name: "standing", Tokens: 120, Messages: 2})
	for n, place := range []core.Placement{core.PlaceStanding, core.PlaceVerbatim, core.PlaceLeftOut} {
		r.StandingInstructions = append(r.StandingInstructions, core.StandingInstruction{Seq: int64(n + 1), MessageID: "m", Text: "rule", State: core.InstructionStands, Placement: place})
	}
	says := []string{
		"2 instructions", "- #1: rule", "- #2: rule (in its message)", "- #3: rule (left out: it does not fit)",
		"12 earlier blocks of the model's reasoning sent; 3 not: the prompt before them has changed", "49 messages: 25 summarized, 24 verbatim, 0 lost", "estimated ± 10%", "24 of 30 (80%)", "89,100 of 128,000 (69%)", "about 3 more turns until then, at the current rate", "! summaries: failing repeatedly",
		"paused for another 1m30s (breaker open)", "the model failed (auth)", "summarizing ",
		"ready v5: 40 messages → 900 cl100k tokens, tokens, llm", "summary v4: 25 messages → 850 cl100k tokens (6,200 before), messages, llm, 3h ago",
		"undone v3: 30 messages → 800 cl100k tokens (repeats version 1)", "earlier (tool calls) v2: 12 messages → 300 cl100k tokens", "erased v1",
	}
	drawn(t, func(w io.Writer, width int) { term.DrawContext(w, r, now, width) }, says...)
	r.Triggers, r.Breaker = nil, "closed"
	drawn(t, func(w io.Writer, width int) { term.DrawContext(w, r, now, width) }, "but the last one failed")
	r.Failure = ""
	drawn(t, func(w io.Writer, width int) { term.DrawContext(w, r, now, width) }, "about 3 more turns until the window is full", "summaries: normal")
	r.WillTrigger = true
	drawn(t, func(w io.Writer, width int) { term.DrawContext(w, r, now, width) }, "summarization will trigger on the next message")
}

// A diff shows what changed with a little around it; long parts that stay are counted.
func TestDrawDiff(t *testing.T) {
	t.Parallel()
	var same []string
	for range 9 {
		same = append(same, "the same\n")
	}
	d := core.SummaryDiff{Version: 3, Against: 2, Added: 1, Removed: 1, Equal: 18, Ops: []core.DiffOp{
		{Op: core.DiffEqual, Pieces: same}, {Op: core.DiffRemoved, Pieces: []string{"It rains.\n", "\n"}},
		{Op: core.DiffAdded, Pieces: []string{"It snows, " + strings.Repeat("and it goes on and on ", 8)}}, {Op: core.DiffEqual, Pieces: same},
	}}
	drawn(t, func(w io.Writer, width int) { term.DrawDiff(w, d, width) }, "version 3 compared to version 2: 1 added, 1 removed, 18 unchanged",
		"… 7 lines unchanged the same the same - It rains. + It snows,", "the same the same … 7 lines unchanged")
	var b strings.Builder
	d.Against, d.Ops = 0, d.Ops[2:3]
	term.DrawDiff(&b, d, 0)
	got := b.String()
	compare.Equal(t, "result", []any{true, 2}, []any{strings.HasPrefix(got, "version 3 compared to an empty summary: 1 added, 1 removed, 18 unchanged\n+ It snows, and"), strings.Count(got, "\n")})
}
