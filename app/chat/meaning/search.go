package meaning

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/relevance"
	"bobbin/app/core/searchtext"
	"bobbin/app/db/repositories"
)

// The bounds of a search.
const (
	fromWords   = 100    // results by words that are joined
	fromVectors = 100    // results by vectors
	maxCompared = 20_000 // vectors of a session: the newest
	vectorBatch = 1_000
	queryTime   = 1500 * time.Millisecond // for the vector of a query
	restTime    = 30 * time.Second        // after a failure of the model
)

// SearchOptions configure a Search. All are required.
type SearchOptions struct {
	Words    *repositories.Search
	Vectors  *repositories.MessageVectors
	Embedder llm.Embedder // keeps the caller's spend limits
	Logger   *slog.Logger
}

// Search is a SearchStore that joins the ranking by words with one by meaning.
type Search struct {
	SearchOptions

	mu    sync.Mutex
	until time.Time // guarded by mu; the model is not asked before
}

var _ core.SearchStore = (*Search)(nil)

// NewSearch returns a Search.
func NewSearch(o SearchOptions) *Search { return &Search{SearchOptions: o} }

// Messages returns a page of results. Errors are those of the search by words.
func (s *Search) Messages(ctx context.Context, tenant core.Tenant, q core.SearchQuery) (core.SearchPage, error) {
	from, joined := decodeCursor(q.Cursor)
	if !joined && (q.Cursor != "" || !isJoinable(q)) {
		return s.Words.Messages(ctx, tenant, q)
	}
	vector, err := s.queryVector(ctx, q.Text)
	if err != nil && !joined {
		page, wordsErr := s.Words.Messages(ctx, tenant, q)
		page.Meaning = core.MeaningUnavailable
		return page, wordsErr
	}
	if !joined {
		from = position{Skip: q.Skip, Before: cmp.Or(q.Before, core.Now())}
	}
	words := q
	words.Cursor, words.Skip, words.Limit, words.Before, words.Around = "", 0, fromWords, from.Before, 0
	page, err := s.Words.Messages(ctx, tenant, words)
	if err != nil {
		return page, err
	}
	if len(vector) > 0 {
		page.Meaning = core.MeaningUsed
		if page.Items, err = s.joinVectors(ctx, tenant, words, page.Items, vector); err != nil {
			return page, err
		}
	} else {
		page.Meaning = core.MeaningUnavailable
	}
	limit := cmp.Or(q.Limit, core.DefaultPageLimit)
	all := page.Items
	if page.NextCursor = nil; page.Total != nil {
		page.Total = new(max(*page.Total, len(all)))
	}
	start := min(from.Skip, len(all))
	if i := slices.IndexFunc(all, func(h core.SearchHit) bool { return h.MessageID == from.Last }); i >= 0 {
		start = i + 1
	}
	end := min(start+limit, len(all))
	page.Items = all[start:end]
	if end < len(all) {
		raw, err := json.Marshal(position{Skip: end, Last: all[end-1].MessageID, Before: from.Before})
		if err != nil {
			panic("meaning: cursor: " + err.Error()) // plain values only
		}
		next := cursorMark + base64.RawURLEncoding.EncodeToString(raw)
		page.NextCursor = &next
	}
	return page, s.Words.AddNeighbors(ctx, tenant, q, page.Items)
}

// isJoinable reports whether meaning has a part in the search.
func isJoinable(q core.SearchQuery) bool {
	if q.SessionID == "" || q.Sort == core.SortNewest || q.Limit < 0 || q.Limit > core.MaxPageLimit {
		return false
	}
	question, err := searchtext.ParseQuestion(q.Text)
	return err == nil && len(question.Must.Terms) == 0
}

// position is where a page of joined results begins.
type position struct {
	Skip   int            `json:"skip"`
	Last   core.MessageID `json:"last,omitempty"` // of the page before; it may have another place now
	Before time.Time      `json:"before"`         // only messages before the first page's time
}

// cursorMark begins the cursors of joined results.
const cursorMark = "m."

// decodeCursor returns the position of a cursor; false = it is none of joined results.
func decodeCursor(cursor string) (p position, ok bool) {
	if len(cursor) < len(cursorMark) || cursor[:len(cursorMark)] != cursorMark {
		return p, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(cursor[len(cursorMark):])
	return p, err == nil && json.Unmarshal(raw, &p) == nil && p.Skip >= 0
}

// queryVector returns the vector of the query. After a failure the model is not asked for a
// while.
func (s *Search) queryVector(ctx context.Context, text string) ([]float32, error) {
	s.mu.Lock()
	resting := time.Now().Before(s.until)
	s.mu.Unlock()
	if resting {
		return nil, core.Errorf(core.ErrUnavailable, "the embedding model failed a moment ago")
	}
	asking, cancel := context.WithTimeout(ctx, queryTime)
	defer cancel()
	vectors, err := s.Embedder.Embed(asking, []string{core.Clip(text, maxEmbedded)})
	if err == nil {
		return vectors[0], nil
	}
	if ctx.Err() == nil && !core.IsSpendRefusal(err) {
		s.Logger.WarnContext(ctx, "search by words alone: the embedding model failed", "model", s.Embedder.Model(), "err", err)
		s.mu.Lock()
		s.until = time.Now().Add(restTime)
		s.mu.Unlock()
	}
	return nil, err
}

func (s *Search) joinVectors(ctx context.Context, tenant core.Tenant, q core.SearchQuery, byWords []core.SearchHit, vector []float32) ([]core.SearchHit, error) {
	var list similarities
	next := core.MessageVectorQuery{
		Space: core.VectorSpace{Model: s.Embedder.Model(), Dimension: len(vector)}, AllBranches: q.AllBranches, Limit: vectorBatch,
		SaidBefore: q.Before, // the question itself would be the nearest, and set the scale
	}
	for compared := 0; compared < maxCompared; compared += vectorBatch {
		batch, err := s.Vectors.SessionVectors(ctx, tenant, q.SessionID, next)
		if err != nil {
			return nil, err
		}
		for _, v := range batch {
			next.Before = v.MessageID
			if len(v.Vector) == len(vector) {
				list = append(list, similarity{v.MessageID, float64(llm.DotProduct(vector, v.Vector))})
			}
		}
		if len(batch) < vectorBatch {
			break
		}
	}
	list = list.withNeighbors().normalize()
	// Of equals the newest first.
	mean := list.mean()
	order := slices.DeleteFunc(slices.Clone(list), func(s similarity) bool { return s.score < mean })
	slices.SortFunc(order, func(a, b similarity) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.id, a.id)) })
	ids := make([]core.MessageID, 0, fromVectors)
	for _, s := range order[:min(fromVectors, len(order))] {
		ids = append(ids, s.id)
	}
	others := slices.DeleteFunc(ids, func(id core.MessageID) bool {
		return slices.ContainsFunc(byWords, func(h core.SearchHit) bool { return h.MessageID == id })
	})
	byMeaning, err := s.Words.Hits(ctx, tenant, q, others)
	if err != nil {
		return nil, err
	}
	question, err := searchtext.ParseQuestion(q.Text)
	return list.join(slices.Concat(byWords, byMeaning), relevance.FindMentions(question, q.Text)), err
}

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
