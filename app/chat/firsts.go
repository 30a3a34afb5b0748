package chat

import (
	"sync"

	"bobbin/app/core"
)

// firstsSize is how many runs firsts remembers.
const firstsSize = 4096

// firsts remembers the numbers of the first events of runs that were accepted
// lately, so that watching a run which one has just begun costs no search. It is
// only a hint. The zero value is ready; safe for concurrent use.
type firsts struct {
	mu   sync.Mutex
	seqs map[core.RunID]int64 // guarded by mu
	ring []core.RunID         // guarded by mu; the oldest is at next once it is full
	next int                  // guarded by mu
}

func (f *firsts) get(id core.RunID) (int64, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	seq, ok := f.seqs[id]
	return seq, ok
}

func (f *firsts) put(id core.RunID, seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seqs == nil {
		f.seqs = make(map[core.RunID]int64)
	}
	f.seqs[id] = seq
	if len(f.ring) < firstsSize {
		f.ring = append(f.ring, id)
		return
	}
	delete(f.seqs, f.ring[f.next])
	f.ring[f.next] = id
	f.next = (f.next + 1) % firstsSize
}
