package fault_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"bobbin/tests/provider"
)

// model is a provider that fails now and then, until it is calm.
type model struct {
	*provider.Server

	calm chan struct{} // closed: nothing fails any more

	mu     sync.Mutex
	faults map[string]int // guarded by mu
}

func newModel() (*model, error) {
	m := &model{calm: make(chan struct{}), faults: map[string]int{}}
	var err error
	m.Server, err = provider.New(provider.Options{Window: modelWindow, Overcount: 1.15, Fault: m.fault, Hold: m.hold, Pieces: 4})
	return m, err
}

// isCalm reports whether nothing fails any more.
func (m *model) isCalm() bool {
	select {
	case <-m.calm:
		return true
	default:
		return false
	}
}

func (m *model) count(what string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[what]++
}

// counts returns how often it failed, in words.
func (m *model) counts() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return fmt.Sprint(m.faults)
}

// wait takes some time, or until it is calm.
func (m *model) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-m.calm:
	}
}

// fault answers some requests by an error, or not at all.
func (m *model) fault(w http.ResponseWriter, _ provider.Asked) bool {
	if m.isCalm() {
		return false
	}
	status := 0
	switch x := rand.Float64(); {
	case x < 0.03:
		status = http.StatusTooManyRequests
	case x < 0.06:
		status = http.StatusInternalServerError
	case x < 0.07:
		m.count("hangs")
		m.wait(2*time.Second + rand.N(10*time.Second))
		panic(http.ErrAbortHandler)
	default:
		return false
	}
	m.count(fmt.Sprint(status))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `{"error":{"message":"not now","type":"server_error"}}`) // who is gone is gone
	return true
}

// hold is asked before each piece of an answer: it takes some time, and some answers
// break off or hang.
func (m *model) hold(string) {
	if m.isCalm() {
		return
	}
	switch x := rand.Float64(); {
	case x < 0.01:
		m.count("broke off")
		panic(http.ErrAbortHandler)
	case x < 0.015:
		m.count("hung in the middle")
		m.wait(2*time.Second + rand.N(8*time.Second))
		panic(http.ErrAbortHandler)
	case x < 0.06:
		m.count("slow")
		m.wait(rand.N(3 * time.Second))
	default:
		m.wait(rand.N(100 * time.Millisecond))
	}
}
