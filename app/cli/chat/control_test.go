package chat_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// In the terminal: the summary, what it changed, undo, and where a message
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
		{"/summary", 2, false, "summary v2: 8 messages → 90 cl100k tokens\n  covers messages up to #7\n  focus: names\n\n## Facts\n- Rex is a dog.\n", "session s"},
		{"/summary v1", 2, false, "summary v1: 4 messages", ""},
		{"/summary 9", 2, false, "! there is no version 9\n", ""},
		{"/summary", 0, false, "! there is no active summary; /summarize creates one, /summary list shows earlier versions\n", "session s"},
		{"/summary diff", 0, false, "! there is no active summary", "session s"},
		{"/summary list", 2, false, "  summary v2: 8 messages → 90 cl100k tokens\n  undone v1: 4 messages → 50 cl100k tokens\n  and older ones\n", ""},
		{"/summary diff", 2, false, "version 2 compared to version 1: 1 added, 1 removed, 2 unchanged\n  ## Facts\n- - Rex barks.\n+ - Rex sleeps.\n", "diff 2 -1"},
		{"/summary diff 1", 2, false, "version 1 compared to", "diff 1 -1"},
		{"/summary restore 1", 2, false, "· restored version 1 as version 3: it covers 4 of 12 messages\n", "context s"},
		{"/summary nonsense", 2, false, "! use /summary, /summary 2, /summary list, /summary diff, or /summary restore 2\n", ""},
		{"/undo", 2, true, "· restored version 1 as version 3: it covers 4 of 12 messages; to undo: /summary restore 2\n  summarization will trigger on the next message\n", "context s"},
		{"/undo", 1, false, "· no active summary: 12 messages in history; to undo: /summary restore 1\n", "context s"},
		{"/why dog", 0, false, "#12 user: summarized, pinned\n    my [dog] is\n    It is covered.\n    Not for long.\n    1,000 tokens stored (1,100 for m), 0 in the prompt\nthere are more; these are the 1 newest\n", "where m12"},
		{"/why #12", 0, false, "#12 user: summarized, pinned\n    my dog\n", "where m12"},
		{"/why 7", 0, false, "#12 user", "where m7"},
		{"/why #99", 0, false, "! there is no message #99\n", ""},
		{"/why " + id, 0, false, "#12 user: summarized, pinned\n    It is covered.", "where " + id},
		{"/why cat", 0, false, "! no message of this conversation contains all these words;", "search s cat"},
		{"/why", 0, false, "! which message? use /why with words from it, or with its number: /why #12\n", ""},
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
		if err := c.Run(t.Context()); err != nil || out.String() != "! there are no messages yet\n" || len(f.calls) != 0 {
			t.Errorf("%s: %v, %q, calls %q", typed, err, out.String(), f.calls)
		}
	}
}
