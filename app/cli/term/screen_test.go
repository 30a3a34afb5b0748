package term_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/mattn/go-runewidth"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/logtext"
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

func TestLine(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text  string
		width int
		want  string
	}{{"a\n b\t c", 0, "a b c"}, {"abcdef", 6, "abcdef"}, {"abcdefg", 6, "abcde…"}, {"日本語です", 6, "日本…"}, {"\x1b[31mred\x07", 0, "[31mred"}}
	for _, tt := range tests {
		compare.Equal(t, fmt.Sprintf("Line(%q, %d)", tt.text, tt.width), tt.want, term.Line(tt.text, tt.width))
	}
}

func TestWrap(t *testing.T) {
	t.Parallel()
	compare.Equal(t, "without a width", "one two\nthree", term.Wrap("one two\nthree", 0, "  "))
	compare.Equal(t, `term.Wrap("one two three\nfour", 10, "  ")`, "one two\n  three\nfour", term.Wrap("one two three\nfour", 10, "  "))
	compare.Equal(t, `term.Wrap("    indented text here", 14, "    ")`, "    indented\n    text here", term.Wrap("    indented text here", 14, "    "))
	for line := range strings.SplitSeq(term.Wrap(strings.Repeat("日本語 and ", 20), 21, "  "), "\n") {
		n := runewidth.StringWidth(line)
		compare.True(t, n <= 20, "%q has %d columns, want at most 20", line, n)
	}
}

func TestSentence(t *testing.T) {
	t.Parallel()
	fields := core.Errorf(core.ErrInvalid, "the message is invalid")
	fields.Fields = []core.FieldError{{Field: "content", Detail: "must not be empty"}}
	tests := []struct {
		err  error
		want string
	}{
		{errors.New("plain\x1b[2J"), "plain[2J"},
		{fmt.Errorf("send: %w", core.Errorf(core.ErrConflict, "it runs already")), "it runs already"},
		{fields, "the message is invalid\n  content: must not be empty"},
		{&url.Error{Op: "Post", URL: "http://127.0.0.1:1/api", Err: errors.New("connection refused")}, "connection refused"},
	}
	for _, tt := range tests {
		compare.Equal(t, fmt.Sprintf("Sentence(%v)", tt.err), tt.want, term.ErrorText(tt.err))
	}
}

// W9: the source of the window is shown unless it is the model's known window.
func TestDrawWindow(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"provider": "window 8,192, learned from a provider error (context_window in models overrides it)\n",
		"default":  "window 8,192, assumed for an unknown model (context_window in models sets it)\n",
		"model":    "", "configuration": "",
	} {
		var b strings.Builder
		term.DrawContext(&b, core.ContextReport{Model: "m", Policy: "window", Window: 8192, WindowFrom: from, Calibration: core.CalibrationView{Deviation: 0.15}}, time.Now(), 0)
		got := b.String()
		compare.True(t, (want == "" || strings.Contains(got, want)) && (want != "" || !strings.Contains(got, "window 8,192")), "%s: got\n%s\nwant %q", from, got, want)
		compare.Contains(t, from+": how far the estimate may be off", "estimated ± 15%", b.String())
	}
}

// A table has columns as wide as their cells; where the terminal is too narrow for it, everything is still
// said, and nothing is wider.
func TestWriteTable(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"ID", "LAST USED", "NOTE"}, {"one", "", "日本"}, {"two", "yesterday", "a note that is longer than a narrow terminal"}}
	for _, width := range []int{0, 120} {
		var out strings.Builder
		term.WriteTable(&out, rows, width)
		want := "ID   LAST USED  NOTE\none             日本\ntwo  yesterday  a note that is longer than a narrow terminal\n"
		compare.Equal(t, fmt.Sprintf("width %d", width), want, out.String())
	}
	for _, width := range []int{20, 40} {
		s := newScreen(t, width)
		term.WriteTable(s, rows, width)
		want := "one note 日本 two last used yesterday, note a note that is longer than a narrow terminal"
		if got := flat(s); got != want || s.widest() >= width {
			t.Errorf("width %d: got %d columns, %q, want %q", width, s.widest(), got, want)
		}
	}
	term.WriteTable(io.Discard, rows[:1], 10) // titles alone
}

// hostile is a text with everything that a terminal obeys or that turns it round.
const hostile = "hi \x1b]52;c;ZXZpbA==\x07\x1b[2J \u009b31mC1 \u202egnp.exe\u202c \u2066x\u2069 \u200e\u061c\x7f\r done\tb\nc"

// hasControls reports whether the text holds a character that steers a terminal.
func hasControls(text string) bool {
	return strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
	})
}

// Nothing that is written steers a terminal, wherever its bytes are parted.
func TestOutputIsCleaned(t *testing.T) {
	t.Parallel()
	const want = "hi ]52;c;ZXZpbA==[2J 31mC1 gnp.exe x  done\tb\nc"
	for size := 1; size <= len(hostile); size++ {
		var b strings.Builder
		out := term.NewOutput(&b)
		for rest := hostile; rest != ""; {
			n := min(size, len(rest))
			if written, err := out.Write([]byte(rest[:n])); written != n || err != nil {
				t.Fatalf("got %d, %v, want %d", written, err, n)
			}
			rest = rest[n:]
		}
		must.True(t, b.String() == want, "in pieces of %d: got %q, want %q", size, b.String(), want)
	}
	var b strings.Builder
	if _, err := term.NewOutput(&b).Write([]byte("a\x9b2Jb")); err != nil || b.String() != "a\ufffd2Jb" {
		t.Errorf("a byte that is no character: got %q, %v", b.String(), err)
	}
}

// An answer is cleaned without a terminal, too.
func TestMarkdownIsCleaned(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	m := term.NewMarkdown(&b, 0, 0)
	m.Write(hostile)
	m.Close()
	compare.True(t, !hasControls(b.String()) && strings.Contains(b.String(), "gnp.exe"), "got %q", b.String())
}

// A JSON document says the same without the characters themselves.
func TestCleanJSONSaysTheSame(t *testing.T) {
	t.Parallel()
	document := must.Get(json.Marshal(map[string]string{hostile: hostile + "é 日本 👍🏽"}))(t)
	clean := term.CleanJSON(document)
	compare.True(t, !hasControls(string(clean)), "got %q", clean)
	var back map[string]string
	if err := json.Unmarshal(clean, &back); err != nil || back[hostile] != hostile+"é 日本 👍🏽" {
		t.Errorf("got %q, %v, want what was written", back, err)
	}
}

func TestPlain(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 1<<20)
	tests := []struct {
		name, in string
		want     []string
	}{
		{"empty", "", nil},
		{"lines", "a\n\nb\n", []string{"a", "", "b"}},
		{"no end", "a\nb", []string{"a", "b"}},
		{"windows", "a\r\nb\r\n", []string{"a", "b"}},
		{"long", long + "\nb", []string{long, "b"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := term.NewPlain(strings.NewReader(tt.in))
			defer p.Close()
			var got []string
			for {
				text, err := p.Line(t.Context())
				if errors.Is(err, io.EOF) {
					break
				}
				must.Do(t, err)
				got = append(got, text)
			}
			compare.Equal(t, "", tt.want, got)
		})
	}
}

// edited returns an editor and where to type.
func edited(t *testing.T) (*term.Edited, io.Writer, *logtext.Log) {
	t.Helper()
	r, w := io.Pipe()
	out := &logtext.Log{}
	e := must.Get(term.NewEdited(r, out, "> "))(t)
	t.Cleanup(func() {
		_ = w.Close()
		_ = e.Close()
	})
	return e, w, out
}

// What is typed and pasted arrives in pieces of any size, but for a key. A paste of several lines is one message.
func TestEdited(t *testing.T) { // not parallel: the editor has globals
	e, keys, out := edited(t)
	long := strings.Repeat("é", 400)
	go func() {
		typed := []string{"Helo", "\x1b[D", "l\r", "\x1b[200~a\nb\x1b[201~ c\r", "\x1b[2", "00~a\r\nb\rc\n\x1b[20", "1~ \x1b[200~d\ne\x1b[201~\r", "\x1b[200~a\tb\x03\x1bc\x1b[201~\r", "\x1b[200~a\nb\x1b[201~[pasted 1: 3 lines]\r"}
		for _, typed := range append(typed, "\x1b[200~"+long+"\x1b[201~\r", "abc\x03", "日本\x7f\r") {
			_, _ = io.WriteString(keys, typed) // the reader sees what is missing
		}
	}()
	for _, want := range []string{"Hello", "a\nb c", "a\nb\nc d\ne", "a    bc", "a\nb[pasted 1: 3 lines]", long} {
		compare.Equal(t, "got", want, must.Get(e.Line(t.Context()))(t))
	}
	compare.Error(t, "Ctrl-C", term.ErrInterrupted, compare.ErrorOf(e.Line(t.Context())))
	compare.Equal(t, "got", "日", must.Get(e.Line(t.Context()))(t))
	s := out.String()
	compare.True(t, strings.Count(s, "\x1b[?2004h") == strings.Count(s, "\x1b[?2004l"), "marking of pastes is switched on and off differently often: %q", s)
}
