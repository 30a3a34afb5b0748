package e2e_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// A session of large messages is read in pages of 8 MiB, forward and backward, in feeds and
// in exports, and nothing of it is left out.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		c := h.NewClient("")
		session, err := c.CreateSession(t.Context(), core.Session{})
		if err != nil {
			t.Fatal(err)
		}
		const n, size = 10, 1_000_000
		for i := range n { // each with an event of its own
			bringIn(t, c, session.ID, core.ImportLines, fmt.Sprintf(`{"role":"user","content":"%d %s"}`+"\n", i, strings.Repeat("lorem ipsum ", size/12+1)))
		}
		for name, q := range map[string]core.MessageQuery{"forward": {}, "backward": {Before: 1000}} {
			q.Limit = core.MaxPageLimit
			seen, pages := map[int64]bool{}, 0
			for ; ; pages++ {
				page, err := c.Messages(t.Context(), session.ID, q)
				if err != nil {
					t.Fatal(err)
				}
				if len(page.Items) > 8 {
					t.Errorf("%s: got %d messages of 1 MB on a page, want at most 8 MiB", name, len(page.Items))
				}
				for i, m := range page.Items {
					if seen[m.Seq] || len(m.Content) < size || i > 0 && m.Seq != page.Items[i-1].Seq+1 {
						t.Errorf("%s: got message %d of %d bytes, want each once, whole and in order", name, m.Seq, len(m.Content))
					}
					seen[m.Seq] = true
				}
				if page.NextCursor == nil {
					break
				}
				q.Cursor = *page.NextCursor
			}
			if len(seen) != n || pages != 1 {
				t.Errorf("%s: got %d messages and %d more pages, want %d and 1", name, len(seen), pages, n)
			}
		}
		last := int64(0)
		for e, err := range c.WatchSession(t.Context(), session.ID, core.Cursor{}) {
			if err != nil || e.Seq != last+1 {
				t.Fatalf("got event %d, %v, want event %d", e.Seq, err, last+1)
			}
			if last = e.Seq; last == n {
				break
			}
		}
		var file bytes.Buffer
		if err := c.ExportSession(t.Context(), session.ID, core.ExportLines, &file); err != nil || strings.Count(file.String(), "\n") != n {
			t.Errorf("got an export of %d bytes, %v, want %d lines", file.Len(), err, n)
		}
	})
}
