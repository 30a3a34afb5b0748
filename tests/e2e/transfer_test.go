package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"bobbin/app/client"
	"bobbin/app/core"
)

// history returns JSON lines of n messages: question and answer in turn, with
// facts here and there.
func history(n int) string {
	var b strings.Builder
	for i := range n {
		if i%2 == 0 {
			fmt.Fprintf(&b, `{"role":"user","content":"Question %d: what do we know about item %d of the inventory in hall %d?"}`+"\n", i, i*7, i%13)
			continue
		}
		fmt.Fprintf(&b, `{"role":"assistant","content":"Answer %d: item %d weighs %d kg and was checked on day %d; nothing else is known about it."}`+"\n", i, i*7, i%400, i)
	}
	return b.String()
}

func bringIn(t testing.TB, c *client.Client, id core.SessionID, format core.ImportFormat, text string) core.Imported {
	t.Helper()
	done, err := c.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(text), Format: format})
	if err != nil {
		t.Fatalf("import: %v", err)
	}
	return done
}

// wholeLog returns all messages of a session.
func wholeLog(t testing.TB, c *client.Client, id core.SessionID) []core.Message {
	t.Helper()
	var all []core.Message
	q := core.MessageQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}}
	for {
		page, err := c.Messages(t.Context(), id, q)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, page.Items...)
		if page.NextCursor == nil {
			return all
		}
		q.Cursor = *page.NextCursor
	}
}
