package core_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
)

// A message without its texts says how much they are, and keeps all else.
func TestWithoutTexts(t *testing.T) {
	t.Parallel()
	m := core.Message{
		ID: "m", Role: core.RoleAssistant, Content: "content", TokenCount: 9, Metadata: json.RawMessage(`{}`),
		Parts:     []core.Part{{Type: "reasoning", Text: "well", Signature: "sig"}, {Type: core.PartImage, BlobID: "b", Size: 5}},
		ToolCalls: []core.ToolCall{{ID: "a", Name: "write", Arguments: `{"n":1}`, Signature: "sig"}},
	}
	want := core.Message{
		ID: "m", Role: core.RoleAssistant, TokenCount: 9, Unloaded: 7 + 2 + 4 + 3 + 7 + 3,
		Parts:     []core.Part{{Type: "reasoning"}, {Type: core.PartImage, BlobID: "b", Size: 5}},
		ToolCalls: []core.ToolCall{{ID: "a", Name: "write"}},
	}
	if diff := cmp.Diff(want, m.WithoutTexts()); diff != "" {
		t.Errorf("without texts (-want +got):\n%s", diff)
	}
	if again := m.WithoutTexts().WithoutTexts(); again.Unloaded != want.Unloaded || m.Content != "content" || m.ToolCalls[0].Arguments == "" {
		t.Errorf("got %d bytes the second time, and %+v of the message itself", again.Unloaded, m)
	}
}

func TestWithNewestTexts(t *testing.T) {
	t.Parallel()
	list := []core.Message{{Content: "12345"}, {Content: ""}, {Content: "1234567"}, {Content: "123"}, {Content: "1234"}}
	for most, want := range map[int]string{100: "12345  1234567 123 1234", 14: "*  1234567 123 1234", 13: "*  * 123 1234", 0: "*  * * 1234"} {
		var got []string
		for _, m := range core.WithNewestTexts(list, most) {
			got = append(got, m.Content+strings.Repeat("*", min(m.Unloaded, 1)))
		}
		if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
			t.Errorf("at most %d bytes (-want +got):\n%s", most, diff)
		}
	}
}

// Slices have at most so many bytes to be loaded, or one message, and no message is in
// two of them.
func TestSlices(t *testing.T) {
	t.Parallel()
	var list []core.Message
	for _, n := range []int{3, 0, 4, 9, 1, 0, 7, 7} {
		list = append(list, core.Message{Unloaded: n})
	}
	var got [][]int
	for slice, size := range core.Slices(list, 8) {
		got = append(got, []int{len(slice), size})
	}
	if diff := cmp.Diff([][]int{{3, 7}, {1, 9}, {3, 8}, {1, 7}}, got); diff != "" {
		t.Errorf("messages and bytes of the slices (-want +got):\n%s", diff)
	}
	for range core.Slices(nil, 8) {
		t.Error("got a slice of no messages")
	}
	for range core.Slices(list, 8) {
		break
	}
}
