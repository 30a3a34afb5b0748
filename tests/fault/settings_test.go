package fault_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"bobbin/tests/process"
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
	seed     uint64
	keep     string // folder for logs; empty = none
}

func readSettings(t *testing.T) settings {
	t.Helper()
	s := settings{time: 12 * time.Second, sessions: 10, seed: uint64(time.Now().UnixNano() % 1_000_000), keep: os.Getenv("BOBBIN_FAULT_KEEP")}
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
	if text := os.Getenv("BOBBIN_FAULT_SEED"); text != "" {
		if s.seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("BOBBIN_FAULT_SEED is %q, want a number", text)
		}
	}
	return s
}

// dice returns random choices of their own for one goroutine.
func dice(seed uint64, who int) *rand.Rand { return rand.New(rand.NewPCG(seed, uint64(who))) }
