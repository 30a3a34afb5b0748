package e2e_test

import (
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"time"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// The conversations that must not fill the memory: 64 messages of a MiB each.
const (
	largeMessages = 64
	largeText     = 1 << 20
)

// However large a conversation is: to look at its context, to answer a question in it and
// to summarize it takes a bounded part of the memory. Its messages would otherwise be in
// there several times. Not in parallel: it measures the process.
func TestLargeConversationNeedsLittleMemory(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { needLittleMemory(t, dbtest.MigratedSQLiteURL(t)) })
	t.Run("postgres", func(t *testing.T) {
		if !apptest.IsLong() {
			t.Skip("set BOBBIN_TEST_LONG=1: what storage loads at once is tested on both in app/db/repositories")
		}
		needLittleMemory(t, dbtest.PostgresURL(t))
	})
}

func needLittleMemory(t *testing.T, url string) {
	t.Helper()
	h := apptest.New(t, url, apptest.WithModel("house", 32_000, 2048, apptest.NewProvider(t, provider.Options{Window: 32_000})),
		apptest.WithAgent("off", "name: off\nsystem_prompt: You never forget.\ncontext: {policy: \"off\"}\n"),
		apptest.WithAgent("window", "name: window\nsystem_prompt: You remember.\ncontext: {policy: window}\n"))
	sessions := map[string]core.SessionID{}
	for _, agent := range []string{"off", "window"} {
		sessions[agent] = apptest.NewSession(t, h.Client, ops.NewSession{Agent: agent})
		fillWithLargeMessages(t, url, sessions[agent])
	}
	peak := watchHeap(t)
	for agent, id := range sessions {
		if before, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: id}); err != nil || before.Coverage.Messages != largeMessages {
			t.Errorf("%s: got %+v, %v, want %d messages", agent, before.Coverage, err, largeMessages)
		}
		if _, err := client.Call(t.Context(), h, ops.GetPrompt, ops.InSession{SessionID: id}); err != nil {
			t.Errorf("%s: prompt: %v", agent, err)
		}
		if _, err := client.Call(t.Context(), h, ops.PlanContext, ops.Plan{InSession: ops.InSession{SessionID: id}, PlanPreview: core.PlanPreview{Content: "and now?"}}); err != nil {
			t.Errorf("%s: dry run: %v", agent, err)
		}
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "hi"})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "and now?"})
		for agent == "window" { // a turn for each call of the model, beside the conversation
			r, err := client.Call(t.Context(), h, ops.GetContext, ops.InSession{SessionID: id})
			if err != nil || r.Coverage.LeftOut == 0 && r.Used <= r.Usable {
				break
			}
			next := 1
			if len(r.Summaries) > 0 {
				next += r.Summaries[0].Version
			}
			awaitSummary(t, h.Client, id, next)
		}
		after := contextOf(t, h.Client, id)
		if after.Coverage.Lost != 0 || after.Used > after.Usable || (agent == "window") != (after.Coverage.Summarized > largeMessages/2) {
			t.Errorf("%s: got %+v and a prompt of %d, usable are %d", agent, after.Coverage, after.Used, after.Usable)
		}
	}
	if _, err := client.Call(t.Context(), h, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: sessions["off"]}}); err != nil {
		t.Errorf("summarize: %v", err)
	}
	const limit = 48 << 20 // all messages have 128 MiB
	if got := peak(); got > limit {
		t.Errorf("the heap grew by %d MiB, want at most %d", got>>20, limit>>20)
	} else {
		t.Logf("the heap grew by %d MiB", got>>20)
	}
}

// fillWithLargeMessages puts the messages into the log, as imports would.
func fillWithLargeMessages(t *testing.T, url string, id core.SessionID) {
	t.Helper()
	tx := dbtest.Open(t, url).Gorm.WithContext(t.Context())
	text := strings.Repeat("lorem ipsum dolor sit amet ", largeText/27)
	for n := range largeMessages {
		role := []core.Role{core.RoleUser, core.RoleAssistant}[n%2]
		err := tx.Exec(`INSERT INTO messages (id, session_id, owner, seq, role, content, status, source, token_count, created_at)
			VALUES (?, ?, ?, ?, ?, ?, 'complete', 'api', 300000, ?)`,
			core.NewID[core.MessageID](), id, core.LocalOwner, n+1, role, text, core.Now()).Error
		if err != nil {
			t.Fatal(err)
		}
	}
	err := tx.Exec("UPDATE sessions SET last_seq = ?, message_count = ? WHERE id = ?", largeMessages, largeMessages, id).Error
	if err != nil {
		t.Fatal(err)
	}
}

// watchHeap returns a function that says by how many bytes the heap has grown at most
// since then, with little garbage in it.
func watchHeap(t *testing.T) (peak func() uint64) {
	t.Helper()
	percent := debug.SetGCPercent(20)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	debug.FreeOSMemory()
	heap := func() uint64 {
		sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
		metrics.Read(sample)
		return sample[0].Value.Uint64()
	}
	begin, most, stop, stopped := heap(), uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(2 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				most = max(most, heap())
			case <-stop:
				return
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-stopped
		return max(most, begin) - begin
	}
}
