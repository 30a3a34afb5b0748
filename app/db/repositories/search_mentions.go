package repositories

import (
	"cmp"
	"slices"

	"bobbin/app/core/relevance"
)

// maxBoosted is how many of the best results may change places by what the question mentions.
const maxBoosted = 200

// boostMentioned boosts the scores of messages whose author or day the question mentions, and
// orders the results again.
func (s *rankedSearch) boostMentioned(list []relevance.Result) error {
	var rows []struct{ ID, Author string }
	err := s.db.Raw("SELECT id, author FROM messages WHERE id IN ? AND author <> ''", idsOf(list, s.messageOf)).Scan(&rows).Error
	if err != nil {
		return err
	}
	authors := make(map[string]string, len(rows))
	for _, r := range rows {
		authors[r.ID] = r.Author
	}
	mentions := relevance.FindMentions(s.question, s.q.Text)
	for i := range list {
		list[i].Score *= mentions.Boost(authors[s.messageOf(list[i])], list[i].At)
	}
	slices.SortStableFunc(list, func(a, b relevance.Result) int { return cmp.Compare(b.Score, a.Score) })
	return nil
}
