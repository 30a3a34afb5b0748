package events

// recentSize is how many ids recent keeps. At most defaultBuffer deltas can
// still be under way when their message is known to be finished.
const recentSize = defaultBuffer

// recent is a bounded set: the oldest id makes room for the newest. The zero
// value is empty and ready.
type recent struct {
	ids  map[string]struct{}
	ring []string // in the order of adding, once it is full from next on
	next int
}

func (r *recent) has(id string) bool {
	_, ok := r.ids[id]
	return ok
}

// add puts the id in; the empty one is never in.
func (r *recent) add(id string) {
	if id == "" || r.has(id) {
		return
	}
	if r.ids == nil {
		r.ids = map[string]struct{}{}
	}
	r.ids[id] = struct{}{}
	if len(r.ring) < recentSize {
		r.ring = append(r.ring, id)
		return
	}
	delete(r.ids, r.ring[r.next])
	r.ring[r.next] = id
	r.next = (r.next + 1) % recentSize
}
