package talk_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// CONTEXT § 9 in the terminal: the summary, what it changed, undo, and where a message
// is.
func TestControlCommands(t *testing.T) {
	t.Parallel()
	const id = "01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"
	for _, tt := range []struct {
		typed   string
		version int // in use
		will    bool
		want    string // the beginning
		call    string // the last one
	}{
		{"/summary", 2, false, "summary v2: 8 messages → 90 tokens\n  it covers the messages up to #7\n  focus: names\n\n## Facts\n- Rex is a dog.\n", "session s"},
		{"/summary v1", 2, false, "summary v1: 4 messages", ""},
		{"/summary 9", 2, false, "! there is no version 9\n", ""},
		{"/summary", 0, false, "! nothing is summarized; /summarize does it now, /summary list shows earlier versions\n", "session s"},
		{"/summary diff", 0, false, "! nothing is summarized", "session s"},
		{"/summary list", 2, false, "  summary v2: 8 messages → 90 tokens\n  undone v1: 4 messages → 50 tokens\n  and older ones\n", ""},
		{"/summary diff", 2, false, "version 2 against version 1: 1 new, 1 gone, 2 as before\n  ## Facts\n- - Rex barks.\n+ - Rex sleeps.\n", "diff 2 -1"},
		{"/summary diff 1", 2, false, "version 1 against", "diff 1 -1"},
		{"/summary restore 1", 2, false, "· back to version 1, as version 3: it covers 4 of 12 messages\n", "context s"},
		{"/summary nonsense", 2, false, "! write /summary, /summary 2, /summary list, /summary diff, or /summary restore 2\n", ""},
		{"/undo", 2, true, "· back to version 1, as version 3: it covers 4 of 12 messages; /summary restore 2 takes that back\n  summarization will trigger on the next message\n", "context s"},
		{"/undo", 1, false, "· nothing is summarized any more: 12 messages of history; /summary restore 1 takes that back\n", "context s"},
		{"/why dog", 0, false, "#12 user: summarized, pinned\n    my [dog] is\n    It is covered.\n    Not for long.\n    1,000 tokens in the log (1,100 for m), 0 in the prompt\nthere are more; these are the newest 1\n", "where m12"},
		{"/why #12", 0, false, "#12 user: summarized, pinned\n    my dog\n", "where m12"},
		{"/why 7", 0, false, "#12 user", "where m7"},
		{"/why #99", 0, false, "! there is no message #99\n", ""},
		{"/why " + id, 0, false, "#12 user: summarized, pinned\n    It is covered.", "where " + id},
		{"/why cat", 0, false, "! no message of this conversation has all of these words;", "search s cat"},
		{"/why", 0, false, "! which message? write /why with words of it, or with its number: /why #12\n", ""},
	} {
		f := &fake{version: tt.version, report: core.ContextReport{WillTrigger: tt.will}}
		c, out := conversation(f, nil, tt.typed)
		c.Session.ID = "s"
		if err := c.Run(t.Context()); err != nil || !strings.HasPrefix(out.String(), tt.want) {
			t.Errorf("%s: %v, got\n%s\nwant\n%s", tt.typed, err, out.String(), tt.want)
		}
		if tt.call != "" && (len(f.calls) == 0 || f.calls[len(f.calls)-1] != tt.call) {
			t.Errorf("%s: calls %q, want %q last", tt.typed, f.calls, tt.call)
		}
	}
}

// Before the first message there is nothing to look at, and no session is made.
func TestControlOfNothing(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"/summary", "/undo", "/why dog"} {
		f := &fake{version: 2}
		c, out := conversation(f, nil, typed)
		if err := c.Run(t.Context()); err != nil || out.String() != "! nothing has been said yet\n" || len(f.calls) != 0 {
			t.Errorf("%s: %v, %q, calls %q", typed, err, out.String(), f.calls)
		}
	}
}
