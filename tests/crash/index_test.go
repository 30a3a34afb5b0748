package crash_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// What a round of the test writes, and the longest time from its first message to the kill.
const (
	indexImport  = 120 // messages, more than one transaction indexes
	indexRevised = 3
	indexDeleted = 3
	indexLongest = 600 * time.Millisecond
)

// A process that is killed while it indexes messages for the search leaves each message in the
// index once or still to be indexed, never one that was deleted. CI kills it several times in the
// middle of a backlog, with BOBBIN_TEST_LONG 100 times at random moments on each database.
func TestIndexKills(t *testing.T) {
	t.Parallel()
	eachPlace(t, func(t *testing.T, p place) {
		x := newIndexKills(t, p)
		for range sized(3, 100) {
			x.round()
			if t.Failed() {
				t.FailNow() // more kills would only bury the first fault
			}
		}
		x.bobbin.start(t)
		x.settle()
		x.verifySearch()
		x.bobbin.stop(t)
		if len(x.rows) == 0 || x.checked == 0 {
			t.Error("nothing was indexed or searched for")
		}
	})
}

// Words that one message each has: of users and imports, and of the model's answer to one.
// Without vowels they are their own stems.
var (
	indexWord  = regexp.MustCompile(`zz[bcdfghjklm]+zz`)
	answerWord = strings.NewReplacer("zz", "vv")
	anyWord    = regexp.MustCompile(`(zz|vv)[bcdfghjklm]+(zz|vv)`)
)

// indexKills is one run of the test.
type indexKills struct {
	t        *testing.T
	dice     *rand.Rand
	bobbin   *bobbin
	api      *client.Client
	database *db.DB // from the first start on

	words   int             // made so far
	there   map[string]bool // words that were accepted, or removed again (false)
	rows    []indexRow      // messages after the last kill
	waiting []int64         // messages to be indexed at each kill
	checked int             // searches
}

// indexRow is a message that can be found.
type indexRow struct {
	ID        core.MessageID
	SessionID core.SessionID
	Role      core.Role
	Content   string
	OnPath    bool
	Imported  bool
}

func newIndexKills(t *testing.T, p place) *indexKills {
	t.Helper()
	model, err := provider.New(provider.Options{Window: modelWindow, Say: func(question string) string {
		return "The answer is " + answerWord.Replace(indexWord.FindString(question))
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	x := &indexKills{t: t, dice: dice(2_000_000), bobbin: newBobbin(t, p, model.URL), there: map[string]bool{}}
	x.bobbin.configure(t, "titles: false\n")
	x.bobbin.start(t)
	x.api = x.bobbin.client(t)
	x.database = dbtest.Open(t, p.database)
	x.bobbin.kill()
	return x
}

// word returns a new word.
func (x *indexKills) word() string {
	x.words++
	return "zz" + strings.Map(func(r rune) rune { return rune("bcdfghjklm"[r-'0']) }, fmt.Sprint(x.words)) + "zz"
}

// text returns a message with the word.
func (x *indexKills) text(word string) string {
	return word + strings.Repeat(" the pump of hall three lost its pressure", 1+x.dice.IntN(20))
}

// round lets the process write and index, kills it, and looks at what it has left.
func (x *indexKills) round() {
	x.t.Helper()
	x.bobbin.launch(x.t)
	ctx, cancel := context.WithCancel(x.t.Context())
	defer cancel()
	written := make(chan struct{})
	if moment := x.dice.IntN(5); moment == 0 && len(x.waiting) > 2 {
		close(written)
		pause(x.t.Context(), time.Duration(x.dice.Int64N(int64(indexLongest/3))))
	} else {
		x.bobbin.ready(x.t)
		wait := time.Duration(x.dice.Int64N(int64(indexLongest))) // write throws the dice, too
		go func() {
			defer close(written)
			x.write(ctx)
		}()
		if moment < 3 && len(x.waiting) > 2 {
			pause(x.t.Context(), wait)
		} else {
			<-written
			x.awaitIndexing()
			pause(x.t.Context(), time.Duration(x.dice.Int64N(int64(30*time.Millisecond))))
		}
	}
	x.bobbin.kill()
	cancel() // the client would wait for the next process
	<-written
	x.waiting = append(x.waiting, x.unindexed())
	x.verifyIndex()
	x.read()
}

// awaitIndexing returns as soon as the process has indexed messages.
func (x *indexKills) awaitIndexing() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	for before := x.indexed(); x.unindexed() > 0 && x.indexed() == before; {
		if !pause(ctx, 2*time.Millisecond) {
			x.t.Fatalf("nothing was indexed for %s", patience)
		}
	}
}

// count returns a number of the database.
func (x *indexKills) count(sql string) (n int64) {
	x.t.Helper()
	if err := x.database.Gorm.WithContext(x.t.Context()).Raw(sql).Scan(&n).Error; err != nil {
		x.t.Fatal(err)
	}
	return n
}

func (x *indexKills) indexed() int64 {
	return x.count("SELECT COALESCE(SUM(seq), 0) FROM session_readers WHERE reader = 'search'")
}

func (x *indexKills) unindexed() int64 {
	return x.count("SELECT COALESCE(SUM(s.last_seq - r.seq), 0) FROM sessions s JOIN session_readers r ON r.session_id = s.id AND r.reader = 'search'")
}

// write searches, revises and deletes, has a turn, and imports messages, until the process is gone.
func (x *indexKills) write(ctx context.Context) {
	var imported, asked []indexRow
	for _, row := range x.rows {
		if row.Imported && row.Role == core.RoleUser {
			imported = append(imported, row)
		} else if row.Role == core.RoleUser {
			asked = append(asked, row)
		}
	}
	steps := []func() error{
		func() error { return x.searchSome(ctx) },
		func() error { return x.importHistory(ctx) },
		func() error { return x.sendMessage(ctx, asked) },
	}
	x.dice.Shuffle(len(imported)/2, func(i, k int) { imported[i], imported[k] = imported[k], imported[i] })
	for i := range min(indexRevised+indexDeleted, len(imported)/2) {
		row := imported[i]
		if i%2 == 0 { // those that came last are perhaps not indexed yet
			row = imported[len(imported)-1-i]
		}
		if i < indexRevised {
			steps = append(steps, func() error { return x.revise(ctx, row) })
		} else {
			steps = append(steps, func() error { return x.remove(ctx, row) })
		}
	}
	x.dice.Shuffle(len(steps), func(i, k int) { steps[i], steps[k] = steps[k], steps[i] })
	for _, step := range steps {
		err := step()
		var problem *client.ProblemError
		switch {
		case errors.As(err, &problem) && problem.Status == http.StatusInternalServerError:
			x.recordFault("%v", err)
		case err != nil && problem == nil:
			return
		}
	}
}

// importHistory imports a history into a new session.
func (x *indexKills) importHistory(ctx context.Context) error {
	session, err := x.api.CreateSession(ctx, core.Session{Title: "history"})
	if err != nil {
		return err
	}
	var lines strings.Builder
	var words []string
	for i := range indexImport {
		words = append(words, x.word())
		fmt.Fprintf(&lines, "{\"role\": %q, \"content\": %q}\n", []core.Role{core.RoleUser, core.RoleAssistant}[i%2], x.text(words[i]))
	}
	_, err = x.api.ImportMessages(ctx, core.ImportMessages{SessionID: session.ID, Body: strings.NewReader(lines.String()), Format: core.ImportLines})
	x.recordAccepted(err, words...)
	return err
}

// recordAccepted notes that messages with the words were accepted.
func (x *indexKills) recordAccepted(err error, words ...string) {
	for _, word := range words {
		if err == nil {
			x.there[word] = true
		}
	}
}

// sendMessage asks something, in a new session or a new version of what was asked before.
func (x *indexKills) sendMessage(ctx context.Context, asked []indexRow) error {
	word := x.word()
	m := core.SendMessage{Content: x.text(word), ClientMessageID: word}
	if len(asked) > 0 && x.dice.IntN(3) == 0 {
		old := asked[x.dice.IntN(len(asked))]
		m.SessionID, m.Edits = old.SessionID, old.ID
	} else {
		session, err := x.api.CreateSession(ctx, core.Session{Title: "talk"})
		if err != nil {
			return err
		}
		m.SessionID = session.ID
	}
	_, err := x.api.SendAsync(ctx, m)
	x.recordAccepted(err, word)
	return err
}

// revise gives a message another text in place.
func (x *indexKills) revise(ctx context.Context, row indexRow) error {
	word, old := x.word(), anyWord.FindString(row.Content)
	delete(x.there, old) // until the answer
	_, err := x.api.ReviseMessage(ctx, row.SessionID, row.ID, x.text(word))
	x.recordAccepted(err, word)
	if err == nil {
		x.there[old] = false
	}
	return err
}

// remove deletes a message.
func (x *indexKills) remove(ctx context.Context, row indexRow) error {
	old := anyWord.FindString(row.Content)
	delete(x.there, old) // until the answer
	err := x.api.DeleteMessage(ctx, row.SessionID, row.ID)
	if err == nil {
		x.there[old] = false
	}
	return err
}

// searchSome looks for some messages while others are indexed.
func (x *indexKills) searchSome(ctx context.Context) error {
	for range min(3, len(x.rows)) {
		row := x.rows[len(x.rows)-1-x.dice.IntN(min(len(x.rows), 2*indexImport))]
		word := anyWord.FindString(row.Content)
		if want, known := x.there[word]; !known || !want {
			continue
		}
		if err := x.find(ctx, core.SearchQuery{Text: `"` + word + `"`, AllBranches: true}, row.ID); err != nil {
			return err
		}
	}
	return nil
}

// find searches, and checks that exactly these messages are found.
func (x *indexKills) find(ctx context.Context, q core.SearchQuery, want ...core.MessageID) error {
	page, err := x.api.Search(ctx, q)
	if err != nil {
		return err
	}
	x.checked++
	var got []core.MessageID
	for _, hit := range page.Items {
		got = append(got, hit.MessageID)
	}
	switch {
	case len(got) < len(want):
		x.recordFault("%s: found nothing, want %s", q.Text, want)
	case len(want) == 0 && len(got) > 0:
		x.recordFault("%s: found %s, want nothing", q.Text, got)
	case !slices.Equal(got, want):
		x.recordFault("%s: found %s, want %s", q.Text, got, want)
	}
	return nil
}

func (x *indexKills) recordFault(format string, args ...any) {
	x.t.Helper()
	x.t.Errorf("after %d kills: "+format, append([]any{len(x.waiting)}, args...)...)
}

// visibleSQL is the condition for messages m of a session s that are there.
const visibleSQL = "m.session_id = s.id AND m.seq <= s.last_seq AND m.deleted_at IS NULL AND m.content <> ''"

// verifyIndex checks the rows that a kill has left.
func (x *indexKills) verifyIndex() {
	x.t.Helper()
	const entries = "SELECT COUNT(*) FROM search_entries e WHERE e.message_id IS NOT NULL"
	for what, sql := range map[string]string{
		"twice":   "SELECT COUNT(*) - COUNT(DISTINCT message_id) FROM search_entries WHERE message_id IS NOT NULL",
		"deleted": entries + " AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.id = e.message_id AND m.deleted_at IS NULL)",
		"early":   entries + " AND EXISTS (SELECT 1 FROM session_readers r WHERE r.session_id = e.session_id AND r.reader = 'search' AND e.seq > r.seq)",
		"missing": "SELECT COUNT(*) FROM messages m, sessions s, session_readers r WHERE " + visibleSQL + " AND r.session_id = s.id AND r.reader = 'search' AND m.seq <= r.seq AND NOT EXISTS (SELECT 1 FROM search_entries e WHERE e.message_id = m.id)",
	} {
		if n := x.count(sql); n != 0 {
			x.recordFault("%d entries or messages are %s", n, what)
		}
	}
}

// read reads the messages that are there.
func (x *indexKills) read() {
	x.t.Helper()
	x.rows = nil
	err := x.database.Gorm.WithContext(x.t.Context()).
		Raw("SELECT m.id, m.session_id, m.role, m.content, m.on_path, s.title = 'history' AS imported FROM messages m, sessions s WHERE " + visibleSQL + " ORDER BY m.id").Scan(&x.rows).Error
	if err != nil {
		x.t.Fatal(err)
	}
}

// settle waits until all runs have ended and all messages are indexed.
func (x *indexKills) settle() {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), patience)
	defer cancel()
	for x.count("SELECT COUNT(*) FROM runs WHERE status IN ('queued', 'running')")+x.unindexed() > 0 {
		if !pause(ctx, 20*time.Millisecond) {
			x.t.Fatalf("%d messages are not indexed after %s", x.unindexed(), patience)
		}
	}
	x.verifyIndex()
	x.read()
}

// verifySearch looks for every word.
func (x *indexKills) verifySearch() {
	x.t.Helper()
	ctx, found := x.t.Context(), map[string]bool{}
	find := func(q core.SearchQuery, want ...core.MessageID) {
		q.Sort = core.SortNewest
		if err := x.find(ctx, q, want...); err != nil {
			x.t.Fatal(err)
		}
	}
	for _, row := range x.rows {
		word := anyWord.FindString(row.Content)
		if word == "" || found[word] {
			x.recordFault("%s has the text %q", row.ID, row.Content)
			continue
		}
		found[word] = true
		find(core.SearchQuery{Text: word, AllBranches: true}, row.ID)
		if !row.OnPath {
			find(core.SearchQuery{Text: word})
		}
	}
	for n := range x.words {
		x.words = n
		word := x.word()
		if want, known := x.there[word]; known && want != found[word] {
			x.recordFault("%s: the message is there: %t, want %t", word, found[word], want)
		}
		if !found[word] {
			find(core.SearchQuery{Text: word, AllBranches: true})
		}
	}
}
