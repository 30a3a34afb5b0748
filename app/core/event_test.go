package core_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/compare"
)

// A delta is the same after the bus; one of no call says nothing of a call.
func TestDeltaAsJSON(t *testing.T) {
	t.Parallel()
	for want, d := range map[string]core.DeltaData{
		`{"message_id":"m1","attempt":1,"offset":3,"offset_utf16":3,"text":"{"}`:                                          {MessageID: "m1", Attempt: 1, Offset: 3, OffsetUTF16: 3, Text: "{"},
		`{"message_id":"m1","attempt":0,"offset":0,"offset_utf16":0,"text":"{","tool_call_id":"c1","name":"get_weather"}`: {MessageID: "m1", Text: "{", DeltaCall: &core.DeltaCall{ToolCallID: "c1", Name: "get_weather"}},
	} {
		raw, err := json.Marshal(d)
		if err != nil || string(raw) != want {
			t.Errorf("got %s, %v, want %s", raw, err, want)
		}
		compare.Equal(t, "decoded", any(d), core.DecodeEventData(core.EventArgumentsDelta, raw))
	}
}
