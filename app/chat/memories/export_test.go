package memories

import "bobbin/app/core"

// Index is an index in memory, for benchmarks.
type Index = index

// NewIndex returns an index of the vectors.
func NewIndex(space core.VectorSpace, list []core.MemoryVector) *Index {
	x := newIndex(space)
	for _, v := range list {
		x.putVector(v)
	}
	return x
}

// Put adds a vector, or takes it out if it is nil.
func (x *Index) Put(v core.MemoryVector) bool { return x.putVector(v) }

// Drop takes a memory out.
func (x *Index) Drop(id core.MemoryID) { x.removeVector(id) }

// Bytes is what the index is taken to need.
func (x *Index) Bytes() int64 { return x.byteSize() }

// Nearest searches the index, with as many cores as a service would.
func (x *Index) Nearest(query []float32, user string, limit int) (ids []core.MemoryID, searched int) {
	best := newNearest(limit, -2)
	searchIndex(x, query, user, best)
	for _, h := range best.hits {
		ids = append(ids, h.id)
	}
	return ids, best.searched
}
