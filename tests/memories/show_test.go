package memories_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"bobbin/app/chat/memories"
	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/db"
	"bobbin/app/db/models"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/seed"
)

// W11: what a search costs, with the index and by scanning the rows. 100,000
// memories with BOBBIN_TEST_LONG (make show-memories), else 3,000. It fails only on
// times that no machine should need.
func TestShowMemories(t *testing.T) {
	rows := 3_000
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		rows = 100_000
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		r := seed.Fixed(9, 9)
		fill(t, d, r, rows)
		store := repositories.NewMemories(d.Gorm)
		kept := memories.New(memories.Options{Store: store, Embedder: llm.HashEmbedder{}, IndexBytes: 1 << 30})
		scanned := memories.New(memories.Options{Store: store, Embedder: llm.HashEmbedder{}, IndexBytes: -1})
		search := func(s *memories.Service, user string) time.Duration {
			began := time.Now()
			got, err := s.Search(t.Context(), core.Tenant{Owner: "ann", User: user}, core.MemorySearch{Query: words(r)})
			took := time.Since(began)
			if err != nil || len(got.Items) != 10 || got.Stale != 0 || user == "" && got.Searched < rows {
				t.Fatalf("got %d of %d, %d stale, error %v", len(got.Items), got.Searched, got.Stale, err)
			}
			return took
		}
		first := search(kept, "")
		warm, one, fresh, scan := median(func() time.Duration { return search(kept, "") }), median(func() time.Duration { return search(kept, "user-7") }),
			median(func() time.Duration {
				if _, err := kept.Create(t.Context(), ann(), core.Memory{Content: words(r)}); err != nil {
					t.Fatal(err)
				}
				return search(kept, "")
			}), median(func() time.Duration { return search(scanned, "") })
		t.Logf("\nThe best 10 of %d memories of 384 numbers, %s, %d cores, medians\n"+
			"  index, the first search loads it   %v\n  index                              %v\n  index, one user of 50              %v\n"+
			"  index, after somebody wrote        %v\n  rows scanned, nothing kept         %v",
			rows, d.Dialect(), runtime.GOMAXPROCS(0), ms(first), ms(warm), ms(one), ms(fresh), ms(scan))
		if warm > 5*time.Second {
			t.Errorf("a search took %v", warm)
		}
	})
}

func ms(d time.Duration) string { return fmt.Sprintf("%6.1f ms", d.Seconds()*1e3) }

// median measures nine times.
func median(measure func() time.Duration) time.Duration {
	var all []time.Duration
	for range 9 {
		all = append(all, measure())
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// fill stores memories of ann's fifty users, faster than one by one.
func fill(t *testing.T, d *db.DB, r *rand.Rand, n int) {
	t.Helper()
	batch := make([]models.Memory, 0, 500)
	for i := range n {
		content := fmt.Sprintf("%s%d", words(r), i)
		list, err := llm.HashEmbedder{}.Embed(t.Context(), []string{content})
		must(t, err)
		batch = append(batch, models.MemoryFrom(core.Memory{
			ID: core.NewID[core.MemoryID](), Owner: "ann", UserID: fmt.Sprintf("user-%d", i%50), Content: content, Revision: 1,
			Embedding: list[0], EmbeddingModel: llm.HashingModel, CreatedAt: core.Now(), UpdatedAt: core.Now(),
		}))
		if len(batch) == cap(batch) || i == n-1 {
			must(t, d.Gorm.WithContext(t.Context()).Create(&batch).Error)
			batch = batch[:0]
		}
	}
	must(t, d.Gorm.WithContext(t.Context()).Create(&models.MemoryRevision{Owner: "ann", Revision: 1}).Error)
	must(t, d.Gorm.WithContext(t.Context()).Exec("ANALYZE").Error)
}
