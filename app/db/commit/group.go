package commit

import "sync"

// Bounds of a batch.
const (
	maxChanges = 128
	maxBytes   = 1 << 20
)

// group collects changes while its writers are at work; the next writer writes them together. A
// change that comes while none is at work is written immediately. Safe for concurrent use.
type group struct {
	turns chan struct{} // holds one token for each writer at work

	mu   sync.Mutex
	next *batch // what the next writer takes; nil = nothing; guarded by mu
}

// batch is what one writer writes.
type batch struct {
	changes []*Change
	bytes   int
	done    chan struct{} // closed after the write
	err     error         // its result; set before done is closed
}

// do returns when the change was written, with the error of its batch. The first of a batch calls its
// write.
func (g *group) do(ch *Change, write func(all []*Change) error) error {
	g.mu.Lock()
	b := g.next
	leads := b == nil || len(b.changes) == maxChanges || b.bytes+ch.bytes > maxBytes
	if leads {
		b = &batch{done: make(chan struct{})}
		g.next = b
	}
	b.changes, b.bytes = append(b.changes, ch), b.bytes+ch.bytes
	g.mu.Unlock()
	if leads {
		g.write(b, write)
	}
	<-b.done
	return b.err
}

func (g *group) write(b *batch, write func(all []*Change) error) {
	g.turns <- struct{}{}
	defer func() {
		<-g.turns
		close(b.done)
	}()
	g.mu.Lock()
	if g.next == b {
		g.next = nil
	}
	g.mu.Unlock()
	b.err = write(b.changes)
}
