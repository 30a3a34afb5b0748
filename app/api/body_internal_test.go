package api

import (
	"testing"
	"time"

	"bobbin/tests/compare"
)

// A request of Slack is not verified before its body was read: it may take no longer than Slack
// waits for the answer, however large it may be.
func TestSlackBodyTime(t *testing.T) {
	t.Parallel()
	limits := Limits{BodyBytes: 1 << 20, ReadBody: time.Minute}
	maxBytes, timeLimit := limits.bodyLimits("/slack/events", false)
	compare.True(t, maxBytes >= 4<<20 && timeLimit == 3*time.Second, "got %d bytes in %s, want those of Slack in 3 s", maxBytes, timeLimit)
}
