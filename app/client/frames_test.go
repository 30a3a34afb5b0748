package client

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

// Frames are read whole, however they are cut into packets; what is cut off at the end is none.
func TestFrames(t *testing.T) {
	t.Parallel()
	const in = ": connected\nid: 7\n\nretry: 1000\nid: 8\nevent: a\ndata: {\"x\": 1}\n\n: keep-alive\n\nevent: b\ndata: y\n\nid: 9\ndata: z\n"
	want := [][3]string{{"7", "", ""}, {"8", "a", `{"x": 1}`}, {"", "", ""}, {"", "b", "y"}}
	for name, r := range map[string]io.Reader{"at once": strings.NewReader(in), "byte by byte": iotest.OneByteReader(strings.NewReader(in))} {
		var got [][3]string
		frames := newFrames(r)
		for frames.Scan() {
			f := parseFrame(frames.Bytes())
			got = append(got, [3]string{f.id, f.event, string(f.data)})
		}
		if diff := cmp.Diff(want, got); diff != "" || frames.Err() != nil {
			t.Errorf("%s: got %v; frames (-want +got):\n%s", name, frames.Err(), diff)
		}
	}
}
