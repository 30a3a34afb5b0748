package memories

import (
	"bobbin/app/core"
	"bobbin/app/core/embed"
)

// blockRows is how many vectors are kept side by side. An index grows by a block,
// so that nothing is ever copied.
const blockRows = 1024

// rowBytes is about what a row of an index takes besides its vector: id, user, and
// its place in the map.
const rowBytes = 160

// sizeOf is what so many vectors of a dimension take in memory, in bytes.
func sizeOf(rows, dimension int) int64 {
	blocks := (rows + blockRows - 1) / blockRows
	return int64(blocks)*blockRows*4*int64(dimension) + int64(rows)*rowBytes
}

// index holds the vectors of one owner in one space. Its user keeps writers and
// readers apart.
type index struct {
	space    core.VectorSpace
	revision int64 // of the owner's memories as they are in here
	ids      []core.MemoryID
	users    []string
	names    map[string]string // each user's name once
	blocks   [][]float32
	slots    map[core.MemoryID]int
}

func newIndex(space core.VectorSpace) *index {
	return &index{space: space, names: map[string]string{}, slots: map[core.MemoryID]int{}}
}

// bytes is about what the index takes in memory.
func (x *index) bytes() int64 { return sizeOf(len(x.ids), x.space.Dimension) }

// at returns the vector of a slot.
func (x *index) at(slot int) []float32 {
	d := x.space.Dimension
	from := slot % blockRows * d
	return x.blocks[slot/blockRows][from : from+d : from+d]
}

// put adds a memory or replaces its vector. One whose vector cannot be compared is
// left out, and reported by false.
func (x *index) put(v core.MemoryVector) bool {
	if v.Vector == nil {
		x.drop(v.ID)
		return true
	}
	if !embed.Sound(v.Vector, x.space.Dimension) {
		x.drop(v.ID)
		return false
	}
	slot, known := x.slots[v.ID]
	if !known {
		slot = len(x.ids)
		if slot == len(x.blocks)*blockRows {
			x.blocks = append(x.blocks, make([]float32, blockRows*x.space.Dimension))
		}
		x.slots[v.ID] = slot
		x.ids, x.users = append(x.ids, v.ID), append(x.users, x.name(v.UserID))
	}
	copy(x.at(slot), v.Vector)
	return true
}

// name returns the one copy of a user's name.
func (x *index) name(user string) string {
	if known, ok := x.names[user]; ok {
		return known
	}
	x.names[user] = user
	return user
}

// drop takes a memory out; the last one takes its place.
func (x *index) drop(id core.MemoryID) {
	slot, known := x.slots[id]
	if !known {
		return
	}
	last := len(x.ids) - 1
	if slot != last {
		copy(x.at(slot), x.at(last))
		x.ids[slot], x.users[slot] = x.ids[last], x.users[last]
		x.slots[x.ids[slot]] = slot
	}
	clear(x.at(last)) // nothing of it stays
	delete(x.slots, id)
	x.ids, x.users = x.ids[:last], x.users[:last]
	if len(x.blocks) > (last+blockRows-1)/blockRows {
		x.blocks[len(x.blocks)-1] = nil
		x.blocks = x.blocks[:len(x.blocks)-1]
	}
}

// search adds what it finds in the slots to best.
func (x *index) search(query []float32, user string, from, to int, best *nearest) {
	d := x.space.Dimension
	for slot := from; slot < to; {
		block := x.blocks[slot/blockRows]
		end := min(to, (slot/blockRows+1)*blockRows)
		for at := slot % blockRows * d; slot < end; slot, at = slot+1, at+d {
			if user != "" && x.users[slot] != user {
				continue
			}
			best.searched++
			if score := embed.Dot(query, block[at:at+d:at+d]); score >= best.least {
				best.add(x.ids[slot], score)
			}
		}
	}
}
