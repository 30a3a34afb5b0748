package meaning

import (
	"cmp"
	"math"
	"slices"

	"bobbin/app/core"
)

// What meaning counts beside words, which count 1, and what a message's neighbors count beside
// itself, as in core/relevance.
const (
	meaningWeight  = 0.5
	neighborWeight = 0.4
)

// near is a message with how near it is to a query.
type near struct {
	id    core.MessageID
	score float64
}

// likeness is how near the messages of a session are to a query, the newest first.
type likeness []near

// mean returns the mean score; 0 for an empty list.
func (l likeness) mean() float64 {
	sum := 0.0
	for _, n := range l {
		sum += n.score
	}
	return sum / float64(max(1, len(l)))
}

// withNeighbors adds to each score a part of those of the messages before and after: an answer
// is often a message that does not repeat what the question before it is about.
func (l likeness) withNeighbors() likeness {
	out, mean := slices.Clone(l), l.mean()
	for i := range l {
		for _, k := range []int{i - 1, i + 1} {
			score := mean
			if k >= 0 && k < len(l) {
				score = l[k].score
			}
			out[i].score += neighborWeight * score
		}
	}
	return out
}

// scaled returns the scores as shares of the way from the least to the greatest.
func (l likeness) scaled() likeness {
	least, most := math.Inf(1), math.Inf(-1)
	for _, n := range l {
		least, most = min(least, n.score), max(most, n.score)
	}
	out := slices.Clone(l)
	for i := range out {
		if out[i].score -= least; most > least {
			out[i].score /= most - least
		}
	}
	return out
}

// nearest returns the n nearest messages that are nearer than the mean; of equally near ones the
// newest first.
func (l likeness) nearest(n int) []core.MessageID {
	mean := l.mean()
	order := slices.DeleteFunc(slices.Clone(l), func(m near) bool { return m.score <= mean })
	slices.SortFunc(order, func(a, b near) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) })
	ids := make([]core.MessageID, 0, n)
	for _, m := range order[:min(n, len(order))] {
		ids = append(ids, m.id)
	}
	return ids
}

// join returns all results, the best first: the score by words as a share of the best one, plus
// a part of how near the message is. What is not embedded counts as the mean.
func (l likeness) join(byWords, byMeaning []core.SearchHit) []core.SearchHit {
	scores, mean := map[core.MessageID]float64{}, l.mean()
	for _, n := range l {
		scores[n.id] = n.score
	}
	best := 0.0
	for _, h := range byWords {
		best = max(best, h.Score)
	}
	var out []core.SearchHit
	known := map[core.MessageID]bool{}
	for _, h := range slices.Concat(byWords, byMeaning) {
		if known[h.MessageID] {
			continue
		}
		known[h.MessageID] = true
		score, embedded := scores[h.MessageID]
		if !embedded {
			score = mean
		}
		score *= meaningWeight
		if best > 0 {
			score += h.Score / best
		}
		h.Score = math.Round(score*1e4) / 1e4
		out = append(out, h)
	}
	slices.SortStableFunc(out, func(a, b core.SearchHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.MessageID, a.MessageID))
	})
	return out
}
