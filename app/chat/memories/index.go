package memories

import (
	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// blockRows is how many vectors a block holds. An index grows by blocks, so that it is never
// copied.
const blockRows = 1024

// rowBytes approximates what a row of an index takes besides its vector: id, user, and map
// entry.
const rowBytes = 160

// sizeOf approximates the memory of so many vectors of a dimension, in bytes.
func sizeOf(rows, dimension int) int64 {
	blocks := (rows + blockRows - 1) / blockRows
	return int64(blocks)*blockRows*4*int64(dimension) + int64(rows)*rowBytes
}

// index holds the vectors of one owner in one space. Its user synchronizes access.
type index struct {
	space    core.VectorSpace
	revision int64 // of the owner's memories in this index
	ids      []core.MemoryID
	users    []string
	names    map[string]string // each user's name once
	blocks   [][]float32
	slots    map[core.MemoryID]int
}

func newIndex(space core.VectorSpace) *index {
	return &index{space: space, names: map[string]string{}, slots: map[core.MemoryID]int{}}
}

// byteSize approximates the memory of the index.
func (x *index) byteSize() int64 { return sizeOf(len(x.ids), x.space.Dimension) }

// vectorAt returns the vector of a slot.
func (x *index) vectorAt(slot int) []float32 {
	d := x.space.Dimension
	from := slot % blockRows * d
	return x.blocks[slot/blockRows][from : from+d : from+d]
}

// putVector adds a memory or replaces its vector. One with an invalid vector is left out, and
// putVector returns false.
func (x *index) putVector(v core.MemoryVector) bool {
	if v.Vector == nil {
		x.removeVector(v.ID)
		return true
	}
	if !llm.IsUnitVector(v.Vector, x.space.Dimension) {
		x.removeVector(v.ID)
		return false
	}
	slot, known := x.slots[v.ID]
	if !known {
		slot = len(x.ids)
		if slot == len(x.blocks)*blockRows {
			x.blocks = append(x.blocks, make([]float32, blockRows*x.space.Dimension))
		}
		x.slots[v.ID] = slot
		x.ids, x.users = append(x.ids, v.ID), append(x.users, x.internUser(v.UserID))
	}
	copy(x.vectorAt(slot), v.Vector)
	return true
}

// internUser returns the shared copy of a user's name.
func (x *index) internUser(user string) string {
	if known, ok := x.names[user]; ok {
		return known
	}
	x.names[user] = user
	return user
}

// removeVector removes a memory; the last one takes its slot.
func (x *index) removeVector(id core.MemoryID) {
	slot, known := x.slots[id]
	if !known {
		return
	}
	last := len(x.ids) - 1
	if slot != last {
		copy(x.vectorAt(slot), x.vectorAt(last))
		x.ids[slot], x.users[slot] = x.ids[last], x.users[last]
		x.slots[x.ids[slot]] = slot
	}
	clear(x.vectorAt(last)) // removes its data from memory
	delete(x.slots, id)
	x.ids, x.users = x.ids[:last], x.users[:last]
	if len(x.blocks) > (last+blockRows-1)/blockRows {
		x.blocks[len(x.blocks)-1] = nil
		x.blocks = x.blocks[:len(x.blocks)-1]
	}
}

// searchSlots adds the hits in the slots to best.
func (x *index) searchSlots(query []float32, user string, from, to int, best *nearest) {
	d := x.space.Dimension
	for slot := from; slot < to; {
		block := x.blocks[slot/blockRows]
		end := min(to, (slot/blockRows+1)*blockRows)
		for at := slot % blockRows * d; slot < end; slot, at = slot+1, at+d {
			if user != "" && x.users[slot] != user {
				continue
			}
			best.searched++
			if score := llm.DotProduct(query, block[at:at+d:at+d]); score >= best.minScore {
				best.addHit(x.ids[slot], score)
			}
		}
	}
}
