package meaning

import (
	"cmp"
	"math"
	"slices"

	"bobbin/app/core"
	"bobbin/app/core/relevance"
)

// The weight of meaning beside words, whose weight is 1, and that of each of the two messages
// beside a message (ADR 0026).
const (
	meaningWeight  = 0.7
	neighborWeight = 0.4
)

// similarity is a message with its cosine similarity to a query.
type similarity struct {
	id    core.MessageID
	score float64
}

// similarities are those of a session, the newest first.
type similarities []similarity

// mean returns the mean score; 0 for an empty list.
func (l similarities) mean() float64 {
	sum := 0.0
	for _, s := range l {
		sum += s.score
	}
	return sum / float64(max(1, len(l)))
}

// withNeighbors adds to each score a part of those of the messages before and after: an answer
// often does not repeat what the question before it is about. A missing neighbor counts as the
// mean.
func (l similarities) withNeighbors() similarities {
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

// normalize scales the scores to 0 … 1; scores that are all the same are 1.
func (l similarities) normalize() similarities {
	least, most := math.Inf(1), math.Inf(-1)
	for _, s := range l {
		least, most = min(least, s.score), max(most, s.score)
	}
	out := slices.Clone(l)
	for i := range out {
		if most > least {
			out[i].score = (out[i].score - least) / (most - least)
		} else {
			out[i].score = 1
		}
	}
	return out
}

// join returns the hits, each once, with their scores, the best first: the score by words as a
// share of the best one, plus the weighted similarity. A message that is not embedded counts as
// the mean. The scores by words have the boosts of what the question mentions already.
func (l similarities) join(hits []core.SearchHit, mentions relevance.Mentions) []core.SearchHit {
	scores, mean, best := map[core.MessageID]float64{}, l.mean(), 0.0
	for _, s := range l {
		scores[s.id] = s.score
	}
	for _, h := range hits {
		best = max(best, h.Score)
	}
	for i := range hits {
		score, embedded := scores[hits[i].MessageID]
		if !embedded {
			score = mean
		}
		score *= meaningWeight * mentions.Boost(hits[i].Author, hits[i].CreatedAt)
		if best > 0 {
			score += hits[i].Score / best
		}
		hits[i].Score = math.Round(score*1e4) / 1e4
	}
	slices.SortStableFunc(hits, func(a, b core.SearchHit) int {
		return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(b.MessageID, a.MessageID))
	})
	return hits
}
