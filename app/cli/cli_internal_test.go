package cli

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// A cost is what is known, and at least that.
func TestUsageCells(t *testing.T) {
	t.Parallel()
	for want, u := range map[string]core.UsageTotal{
		"$0.0100":      {Calls: 2, CostMicroUSD: 10_000},
		"≥ $0.0100":    {Calls: 2, CostMicroUSD: 10_000, UnpricedCalls: 1},
		"no price set": {Calls: 2, UnpricedCalls: 1},
	} {
		if got := usageCells(u); !strings.HasSuffix(got, "\t"+want+"\t") {
			t.Errorf("%+v: got %q, want %q", u, got, want)
		}
	}
}

// The version stands in one place, from which a release has it, and what is built for others has no
// paths, nothing for debuggers and no codec that nobody uses.
func TestVersion(t *testing.T) {
	t.Parallel()
	if got := readBuild().Version; got != version || !strings.HasPrefix(got, "0.") {
		t.Errorf("got version %q, want %q", got, version)
	}
	found, err := exec.CommandContext(t.Context(), "sh", "-c", `cd ../.. && eval "$(grep '^version=' scripts/release)" && printf %s "$version"`).Output()
	if err != nil || string(found) != version {
		t.Errorf("scripts/release finds the version %q, %v, want %q", found, err, version)
	}
	for file, want := range map[string][]string{
		"Makefile":          {"-trimpath -tags=nomsgpack", "CGO_ENABLED=0 go build -ldflags '-s -w'"},
		"scripts/release":   {"CGO_ENABLED=0", "go build -trimpath -tags nomsgpack -ldflags '-s -w'"},
		"scripts/test":      {"-trimpath -tags=nomsgpack"},
		"deploy/Dockerfile": {`CGO_ENABLED=0 go build -tags nomsgpack -trimpath -ldflags="-s -w"`},
	} {
		text := must.Get(os.ReadFile("../../" + file))(t)
		for _, flags := range want {
			compare.Contains(t, fmt.Sprintf("%s lacks %s", file, flags), flags, string(text))
		}
	}
}

// The welcome says what Slack must be told: the address of events, or nothing.
func TestSlackSource(t *testing.T) {
	t.Parallel()
	if got, want := slackSource(config.Slack{}, "http://127.0.0.1:1"), "expects events at http://127.0.0.1:1/slack/events"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	compare.Equal(t, "got", "Socket Mode", slackSource(config.Slack{AppToken: config.NewSecret("xapp-1")}, ""))
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
	compare.Equal(t, "out", want, out.String())
}
