// Package relevance orders the messages that a search may have found: the best first. It is
// the same for both databases, which only choose the messages to be ordered.
//
// The score of a message is BM25F over two fields: its own words, and those of its neighbors, two
// on each side, which count less. What belongs to a question often stands beside the words of the
// question; long neighbors, which have some word of most questions, count for nothing. A message
// without a word of the question is a result if two or more of them stand beside it. Very short
// messages count less, as they rarely answer anything, unless they have all words of the question.
//
// All functions are pure and safe for concurrent use.
package relevance

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"bobbin/app/core/searchtext"
)

// The parameters of BM25, with the usual values, and what a word of a neighbor counts.
const (
	saturation     = 1.2
	lengthShare    = 0.75
	neighborWeight = 0.4
	Neighbors      = 2 // on each side
	leastBeside    = 2 // words of the question beside a message without any
	// longNeighbor is the length above which a message does not count for its neighbors: a text of
	// that length has some word of most questions.
	longNeighbor = 60
	// shortLength is the length, in words without stop words, at which a message counts about
	// half of a long one with the same words: "Sounds good!" beside an answer is seldom the answer.
	shortLength = 4
)

// Document is a message to be ordered.
type Document struct {
	ID      int64 // unique
	Session string
	Seq     int64
	At      time.Time
	Length  int // in words without stop words
	Terms   searchtext.Terms
	Beside  bool // is no result; it only counts for its neighbors
}

// Question is what the documents are ordered by.
type Question struct {
	Groups []searchtext.Group
	// Members are the documents that have a group with a Term, by the group's index.
	Members map[int]map[int64]bool
}

// count returns how often the document has the group.
func (q Question) count(group int, d *Document) int {
	if q.Groups[group].Term == nil {
		return q.Groups[group].Count(d.Terms)
	}
	if q.Members[group][d.ID] {
		return 1
	}
	return 0
}

// Frequencies returns in how many of the documents, or beside how many, each group stands.
// The documents must have different places.
func (q Question) Frequencies(documents []Document) []int {
	out := make([]int, len(q.Groups))
	last := make([]int64, len(q.Groups)) // the last place that is counted, of the session
	session := ""
	for _, d := range sortDocuments(documents) {
		if d.Session != session {
			session = d.Session
			clear(last)
		}
		for g := range q.Groups {
			if q.count(g, d) == 0 {
				continue
			}
			from := max(1, d.Seq-Neighbors, last[g]+1)
			last[g] = d.Seq + Neighbors
			out[g] += int(max(0, last[g]-from+1))
		}
	}
	return out
}

// sortDocuments returns the documents in the order of their places.
func sortDocuments(documents []Document) []*Document {
	order := make([]*Document, len(documents))
	for i := range documents {
		order[i] = &documents[i]
	}
	slices.SortFunc(order, func(a, b *Document) int {
		return cmp.Or(strings.Compare(a.Session, b.Session), cmp.Compare(a.Seq, b.Seq))
	})
	return order
}

// KeepRarest returns the question with the rarest groups only, at most n of them, in their
// order, and the frequencies of these. With isKnown, groups with a frequency of 0 count as
// the least rare: nothing has them.
func (q Question) KeepRarest(n int, frequencies []int, isKnown bool) (Question, []int) {
	if len(q.Groups) <= n {
		return q, frequencies
	}
	order := make([]int, len(q.Groups))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if isNever := func(i int) bool { return isKnown && frequencies[i] == 0 }; isNever(a) != isNever(b) {
			return cmp.Compare(frequencies[b], frequencies[a])
		}
		return cmp.Compare(frequencies[a], frequencies[b])
	})
	order = order[:n]
	slices.Sort(order)
	kept, counts := Question{Members: map[int]map[int64]bool{}}, make([]int, n)
	for to, from := range order {
		kept.Groups = append(kept.Groups, q.Groups[from])
		counts[to] = frequencies[from]
		if members, ok := q.Members[from]; ok {
			kept.Members[to] = members
		}
	}
	return kept, counts
}

// Place is where a document stands.
type Place struct {
	Session string
	Seq     int64
}

// Place returns where the document stands.
func (d Document) Place() Place { return Place{d.Session, d.Seq} }

// Weights returns what each group counts, by its frequency among so many documents.
func Weights(frequencies []int, total int64) []float64 {
	out := make([]float64, len(frequencies))
	for i, f := range frequencies {
		n := min(float64(f), float64(total))
		out[i] = math.Log(1 + (float64(total)-n+0.5)/(n+0.5))
	}
	return out
}

// MeanLength returns the mean length of the documents, at least 1.
func MeanLength(documents []Document) float64 {
	sum := 0
	for _, d := range documents {
		sum += d.Length
	}
	return max(1, float64(sum)/float64(max(1, len(documents))))
}

// Ranking is how documents are ordered.
type Ranking struct {
	Question
	Weights []float64 // of the groups
	Mean    float64   // length of a document
	// Whole says that the documents are all of their sessions: a place without one has none.
	// Otherwise a missing neighbor has the mean length, and nothing of the question.
	Whole bool
}

// Result is a document with its score.
type Result struct {
	*Document
	Score float64
}

// Order returns the documents with a score, the best first; among equals the newest.
func (r Ranking) Order(documents []Document) []Result {
	order := sortDocuments(documents)
	places := make([]counted, len(order))
	all := make([]int, len(order)*len(r.Groups))
	for i, d := range order {
		places[i] = counted{Document: d, counts: all[i*len(r.Groups) : (i+1)*len(r.Groups)]}
		for g := range r.Groups {
			places[i].counts[g] = r.count(g, d)
			places[i].any = places[i].any || places[i].counts[g] > 0
		}
	}
	var out []Result
	for i := range places {
		if places[i].Beside {
			continue
		}
		if score := r.score(places, i); score > 0 {
			out = append(out, Result{places[i].Document, score})
		}
	}
	slices.SortFunc(out, func(a, b Result) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), b.At.Compare(a.At), strings.Compare(b.Session, a.Session), cmp.Compare(b.Seq, a.Seq), cmp.Compare(b.ID, a.ID))
	})
	return out
}

// counted is a document with how often it has each group.
type counted struct {
	*Document
	counts []int
	any    bool
}

// score returns the score of the document at i.
func (r Ranking) score(places []counted, i int) float64 {
	beside, length, hasAny := r.neighbors(places, i)
	own := places[i]
	if !own.any && !hasAny {
		return 0
	}
	found, has, score := 0, 0, 0.0
	ownNorm := r.norm(float64(own.Length))
	besideNorm := r.norm(length / (2 * Neighbors))
	for g, weight := range r.Weights {
		near := 0
		for _, b := range beside {
			near += b.counts[g]
		}
		if own.counts[g] == 0 && near == 0 {
			continue
		}
		found++
		if own.counts[g] > 0 {
			has++
		}
		f := float64(own.counts[g])/ownNorm + neighborWeight*float64(near)/besideNorm
		score += weight * f * (saturation + 1) / (f + saturation)
	}
	if !own.any && found < leastBeside {
		return 0
	}
	if has == len(r.Groups) || r.Groups[0].Stop {
		return score
	}
	length = float64(own.Length) + 1 // a message may have stop words only
	return score * length / (length + shortLength)
}

// norm returns by what the count of a word is divided in a text of the length.
func (r Ranking) norm(length float64) float64 { return 1 - lengthShare + lengthShare*length/r.Mean }

// neighbors returns the neighbors of the document at i that are not long, the length of all four
// places, and whether one has anything of the question. A place without one of them has the mean
// length, or none beyond the ends of a session.
func (r Ranking) neighbors(places []counted, i int) (list []*counted, length float64, hasAny bool) {
	var buffer [2 * Neighbors]*counted
	list = buffer[:0]
	for _, step := range []int{-1, 1} {
		for n := 1; n <= Neighbors; n++ {
			j := i + n*step
			switch isPlace := j >= 0 && j < len(places) && places[j].Session == places[i].Session && (r.Whole || max(places[j].Seq-places[i].Seq, places[i].Seq-places[j].Seq) <= Neighbors); {
			case isPlace && places[j].Length <= longNeighbor:
				list = append(list, &places[j])
				length += float64(places[j].Length)
				hasAny = hasAny || places[j].any
			case isPlace || !r.Whole:
				length += r.Mean
			}
		}
	}
	return list, length, hasAny
}
