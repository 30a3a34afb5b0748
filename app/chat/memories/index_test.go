package memories_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"bobbin/app/chat/memories"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/seed"
)

// random returns n vectors of a dimension, of three users.
func random(r *rand.Rand, n, dimension int) []core.MemoryVector {
	out := make([]core.MemoryVector, n)
	for i := range out {
		out[i] = core.MemoryVector{ID: core.NewID[core.MemoryID](), UserID: []string{"", "carol", "dave"}[r.IntN(3)], Vector: direction(r, dimension)}
	}
	return out
}

func direction(r *rand.Rand, dimension int) []float32 {
	v := make([]float32, dimension)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	unit, err := llm.UnitVector(v, dimension)
	if err != nil {
		panic(err)
	}
	return unit
}

// nearestOf compares with every vector and sorts.
func nearestOf(list []core.MemoryVector, query []float32, user string, limit int) []core.MemoryID {
	var kept []core.MemoryVector
	for _, v := range list {
		if v.Vector != nil && (user == "" || v.UserID == user) {
			kept = append(kept, v)
		}
	}
	slices.SortFunc(kept, func(a, b core.MemoryVector) int {
		return cmp.Or(cmp.Compare(llm.DotProduct(query, b.Vector), llm.DotProduct(query, a.Vector)), strings.Compare(string(b.ID), string(a.ID)))
	})
	var ids []core.MemoryID
	for _, v := range kept[:min(limit, len(kept))] {
		ids = append(ids, v.ID)
	}
	return ids
}

// Whatever is added, changed and taken out, an index finds what a comparison with
// every vector finds, over the borders of blocks and with several cores, and equals
// in the order of their ids.
func TestIndexIsExact(t *testing.T) {
	t.Parallel()
	const dimension = 8
	r := seed.Fixed(1, 2)
	space := core.VectorSpace{Model: "m", Dimension: dimension}
	list := random(r, 40_000, dimension)
	for i := range 500 { // equals
		list[i*7].Vector = list[0].Vector
	}
	x := memories.NewIndex(space, list)
	check := func(when string) {
		t.Helper()
		for _, user := range []string{"", "carol", "erin"} {
			for _, query := range [][]float32{direction(r, dimension), list[0].Vector} {
				if query == nil {
					query = direction(r, dimension)
				}
				got, _ := x.Nearest(query, user, 25)
				if diff := gocmp.Diff(nearestOf(list, query, user, 25), got); diff != "" {
					t.Fatalf("%s, user %q (-want +got):\n%s", when, user, diff)
				}
			}
		}
	}
	check("filled")
	for range 20_000 {
		switch i := r.IntN(len(list)); r.IntN(4) {
		case 0:
			list[i].Vector = direction(r, dimension)
			x.Put(list[i])
		case 1:
			list[i].Vector = nil
			x.Put(list[i])
		default:
			list[i].Vector = nil
			x.Drop(list[i].ID)
		}
	}
	check("after changes")
	for i := range list {
		x.Drop(list[i].ID)
		list[i].Vector = nil
	}
	check("empty")
	if x.Bytes() != 0 {
		t.Errorf("empty: got %d bytes, want none", x.Bytes())
	}
	if x.Put(core.MemoryVector{ID: list[0].ID, Vector: []float32{1}}) || x.Put(core.MemoryVector{ID: list[0].ID, Vector: make([]float32, dimension)}) {
		t.Error("took a vector of another dimension, or one of no length")
	}
}

// 100,000 memories of 384 numbers, the best ten.
func BenchmarkNearest(b *testing.B) {
	r := seed.Fixed(3, 4)
	x := memories.NewIndex(core.VectorSpace{Model: "m", Dimension: 384}, random(r, 100_000, 384))
	query := direction(r, 384)
	for b.Loop() {
		x.Nearest(query, "", 10)
	}
}
