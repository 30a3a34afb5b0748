package cli

import (
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

// The welcome says what Slack must be told: the address of events, or nothing.
func TestSlackSource(t *testing.T) {
	t.Parallel()
	if got, want := slackSource(config.Slack{}, "http://127.0.0.1:1"), "expects events at http://127.0.0.1:1/slack/events"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := slackSource(config.Slack{AppToken: config.NewSecret("xapp-1")}, ""); got != "Socket Mode" {
		t.Errorf("got %q, want Socket Mode", got)
	}
}

// What is wrong with the posts of a thread is shown with the session.
func TestPrintSlackStatus(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	p := &program{Streams: Streams{Out: &out}}
	p.printSlackStatus(nil)
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	p.printSlackStatus(&core.SlackThreadStatus{
		SlackThread: core.SlackThread{Channel: "C1", Thread: "1700000000.000100", Mode: core.SlackTwoWay},
		BehindSince: &since, Reason: "auth.test: invalid_auth",
		Faults: []core.SlackFault{{ItemID: "m1", Part: 1, State: core.SlackPostUnknown, Reason: "Slack's answer\nwas lost"}},
	})
	want := "Slack: thread 1700000000.000100 in channel C1, two_way\n  posts are missing since 2026-01-02 03:04:05: auth.test: invalid_auth\n  part 2 of m1 is unknown in Slack: Slack's answer was lost\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
