package fault_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"bobbin/tests/process"
	"bobbin/tests/seed"
)

// patience is how long the tests wait for what should take no time, and for what takes
// a lease: long enough for any machine.
const patience = 2 * time.Minute

// den holds all files of the tests.
var den *process.Den

func TestMain(m *testing.M) {
	var err error
	if den, err = process.Open("fault"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	den.Close()
	os.Exit(code)
}

// settings are what the variables of the environment say.
type settings struct {
	time     time.Duration
	sessions int
	keep     string // folder for logs; empty = none
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{time: 12 * time.Second, sessions: 10, keep: os.Getenv("BOBBIN_FAULT_KEEP")}
	var err error
	if text := os.Getenv("BOBBIN_FAULT_TIME"); text != "" {
		if s.time, err = time.ParseDuration(text); err != nil || s.time <= 0 {
			t.Fatalf("BOBBIN_FAULT_TIME is %q, want a time such as 30m", text)
		}
	}
	if text := os.Getenv("BOBBIN_FAULT_SESSIONS"); text != "" {
		if s.sessions, err = strconv.Atoi(text); err != nil || s.sessions <= 0 {
			t.Fatalf("BOBBIN_FAULT_SESSIONS is %q, want a number", text)
		}
	}
	return s
}

// dice returns random choices of their own for one goroutine.
func dice(who int) *rand.Rand { return seed.Fixed(seed.Value(), uint64(who)) }

// shared is for goroutines that come and go. The seed does not decide who of them draws first.
var shared = seed.Fixed(seed.Value(), 1<<40)

// randomDelay returns a time shorter than the longest.
func randomDelay(longest time.Duration) time.Duration {
	return time.Duration(shared.Int64N(int64(longest)))
}
