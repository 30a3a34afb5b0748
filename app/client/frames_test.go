package client

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// shown is a frame as tests compare it.
type shown struct {
	ID, Event, Data string
	Comment         bool
}

func readFrames(r io.Reader, limit int) ([]shown, error) {
	frames := newFrameReader(r, limit)
	var all []shown
	for {
		f, err := frames.nextFrame()
		if err != nil {
			return all, err
		}
		all = append(all, shown{f.id, f.event, string(f.data), f.comment})
	}
}

func TestFrames(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     []shown
	}{
		{"one", "id: 7\nevent: a\ndata: {}\n\n", []shown{{"7", "a", "{}", false}}},
		{"two, the id is not carried over", "id: 7\ndata: x\n\ndata: y\n\n", []shown{{"7", "", "x", false}, {"", "", "y", false}}},
		{"carriage returns", "id: 7\revent: a\rdata: x\r\r", []shown{{"7", "a", "x", false}}},
		{"both", "event: a\r\ndata: x\r\ndata: y\r\n\r\ndata: z\r\n\r\n", []shown{{"", "a", "x\ny", false}, {"", "", "z", false}}},
		{"mixed", "data: x\r\rdata: y\n\r\n", []shown{{"", "", "x", false}, {"", "", "y", false}}},
		{"several data lines", "data: a\ndata:\ndata:b\ndata:  c\n\n", []shown{{"", "", "a\n\nb\n c", false}}},
		{"no space, no colon", "data:x\ndata\n\n", []shown{{"", "", "x\n", false}}},
		{"comments", ": connected\n\n:\n: keep-alive\n\n", []shown{{"", "connected", "", true}, {"", "", "", true}, {"", "keep-alive", "", true}}},
		{"comment inside", "event: a\n: no\ndata: x\n\n", []shown{{"", "a", "x", false}}},
		{"no data, no event", "event: a\n\nid: 7\n\nretry: 9\n\ndata: x\n\n", []shown{{"", "", "x", false}}},
		{"unknown fields", "retry: 1000\nfoo: bar\nfoo\ndata: x\n\n", []shown{{"", "", "x", false}}},
		{"byte order mark", "\xef\xbb\xbfdata: x\n\n", []shown{{"", "", "x", false}}},
		{"byte order mark later", "\xef\xbb\xbf\xef\xbb\xbfdata: y\ndata: x\n\n", []shown{{"", "", "x", false}}},
		{"id with a NUL", "id: 1\x002\ndata: x\n\n", []shown{{"", "", "x", false}}},
		{"cut off", "data: x\n\ndata: y\n", []shown{{"", "", "x", false}}},
		{"cut off in a line", "data: x\n\ndata: y", []shown{{"", "", "x", false}}},
		{"nothing", "", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for name, r := range map[string]io.Reader{
				"at once": strings.NewReader(tt.in), "byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			} {
				got, err := readFrames(r, 1000)
				if diff := cmp.Diff(tt.want, got); diff != "" || !errors.Is(err, io.EOF) {
					t.Errorf("%s: got %v; frames (-want +got):\n%s", name, err, diff)
				}
			}
		})
	}
}

func TestFramesAreBounded(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"a line":     "data: " + strings.Repeat("x", 100),
		"many lines": strings.Repeat("data: xxxx\n", 20),
		"no end":     strings.Repeat("foo: bar\n", 20),
		"a comment":  ": " + strings.Repeat("x", 100),
	} {
		if _, err := readFrames(strings.NewReader(in), 100); !errors.Is(err, errFrameTooLarge) {
			t.Errorf("%s: got %v, want errFrameTooLarge", name, err)
		}
	}
	in := strings.Repeat("data: "+strings.Repeat("x", 90)+"\n\n", 10)
	if got, err := readFrames(strings.NewReader(in), 100); len(got) != 10 || !errors.Is(err, io.EOF) {
		t.Errorf("got %d frames, %v, want 10: each has the limit for itself", len(got), err)
	}
	boom := errors.New("boom")
	if _, err := readFrames(iotest.ErrReader(boom), 100); !errors.Is(err, boom) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

// reference reads events the slow way: all lines at once, as the standard's
// grammar has them.
func reference(in string) []shown {
	in = strings.TrimPrefix(in, "\xef\xbb\xbf")
	in = strings.ReplaceAll(strings.ReplaceAll(in, "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(in, "\n")
	var all []shown
	var got shown
	var data []string
	for _, line := range lines[:len(lines)-1] { // the last one has no end
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if data != nil {
				got.Data = strings.Join(data, "\n")
				all = append(all, got)
			}
			got, data = shown{}, nil
		case name == "data":
			data = append(data, value)
		case name == "event":
			got.Event = value
		case name == "id" && !strings.Contains(value, "\x00"):
			got.ID = value
		}
	}
	return all
}

// FuzzFrames: whatever a server sends, and however it is cut into packets, the
// events are those of the standard.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"id: 7\r\nevent: a\r\ndata: {}\r\n\r\n", ": c\n\ndata: x\rdata\r\r", "\xef\xbb\xbfdata:x\n\n", "id:\x00\ndata:\n\n", "\r\n\n\r", "data: x\n\r\n:y\n\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		want := reference(string(in))
		for _, r := range []io.Reader{bytes.NewReader(in), iotest.HalfReader(bytes.NewReader(in))} {
			all, err := readFrames(r, len(in)+1)
			if !errors.Is(err, io.EOF) {
				t.Fatalf("got %v, want io.EOF", err)
			}
			var got []shown
			for _, f := range all {
				if !f.Comment {
					got = append(got, f)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("frames of %q (-want +got):\n%s", in, diff)
			}
		}
	})
}
