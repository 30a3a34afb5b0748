package e2e_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/provider"
)

// Twenty rounds of summarization with a summarizer that
// forgets, rewords, runs on, repeats, fails and talks. Sixty planted facts are in the
// ledger or found by search_history, all of them; no round is over its limit, and
// summaries do not grow. BOBBIN_TEST_LONG=1 has all policies, and PostgreSQL: what differs
// there is how messages are found, which app/db/repositories tests on both.
func TestRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("20 rounds and 60 look-ups with each of three policies take a while")
	}
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		policies := []roundPolicy{{"window", 2621}, {"ratio", 2000}, {"sliding", 500}}
		policies = policies[:apptest.ChooseSize(1, len(policies))]
		for _, p := range policies {
			t.Run(p.name, func(t *testing.T) { playRounds(t, url, p) })
		}
	})
}

// roundPolicy is a policy and the limit of its summaries for a window of 128K.
type roundPolicy struct {
	name  string
	limit int
}

const (
	roundCount = 20
	moods      = 5 // of the summarizer, one a round in turn
)

// manyRounds is a conversation that is summarized again and again.
type manyRounds struct {
	*apptest.Bobbin
	t        *testing.T
	policy   roundPolicy
	id       core.SessionID
	facts    []planted
	made     []core.Summary
	looked   map[string]bool // questions that were answered with a look-up
	calls    int             // of the summarizer, in this round
	previous string          // the material of the last one
}

// planted is a fact and the message that has it.
type planted struct {
	kind, text string
	seq        int64
}

func playRounds(t *testing.T, url string, policy roundPolicy) {
	r := &manyRounds{t: t, policy: policy, looked: map[string]bool{}}
	p := apptest.NewProvider(t, provider.Options{Fault: r.answer})
	r.Bobbin = apptest.New(t, url, apptest.WithModel("house", 131_072, 2048, p), apptest.WithAgent("keeper", fmt.Sprintf(
		"name: keeper\nsystem_prompt: You keep notes.\ntools: [search_history]\ncontext:\n  policy: %s\n  auto_summarize: false\n  timing: inline\n", policy.name)))
	r.id = apptest.NewSession(t, r.Client, ops.NewSession{Agent: "keeper"})
	for n := range roundCount {
		r.round(n)
	}
	r.check()
}

// round plants three facts and summarizes.
func (r *manyRounds) round(n int) {
	r.t.Helper()
	facts, text := roundOf(r.t, n)
	done := bringIn(r.t, r.Client, r.id, core.ImportLines, text)
	for i := range facts {
		facts[i].seq += done.FirstSeq
	}
	r.facts, r.calls = append(r.facts, facts...), 0
	made, err := client.Call(r.t.Context(), r, ops.SummarizeSession, ops.Summarize{InSession: ops.InSession{SessionID: r.id}})
	if err != nil {
		r.t.Fatalf("round %d: %v", n+1, err)
	}
	if made.TokenCount > r.policy.limit || made.TokenCount == 0 {
		r.t.Errorf("round %d: got a summary of %d tokens, want at most %d", n+1, made.TokenCount, r.policy.limit)
	}
	r.made = append(r.made, made)
}

// answer makes what the round's mood asks of a request for a summary, and looks up
// what it is told to look up.
func (r *manyRounds) answer(w http.ResponseWriter, a provider.Asked) bool {
	if a.Summary {
		delta, finish := r.summary(a.Question)
		stream(w, delta, finish)
		return true
	}
	query, ok := strings.CutPrefix(a.Question, "look up ")
	if !ok || r.looked[a.Question] {
		return false
	}
	r.looked[a.Question] = true
	args, err := json.Marshal(map[string]string{"query": query})
	if err != nil {
		r.t.Error(err)
	}
	stream(w, map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "look_1", "type": "function",
		"function": map[string]any{"name": "search_history", "arguments": string(args)}}}}, "tool_calls")
	return true
}

// stream answers with one chunk.
func stream(w http.ResponseWriter, delta map[string]any, finish string) {
	chunk, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: %s\n\ndata: [DONE]\n\n", chunk)
}

// summary is what the summarizer says in the mood of the round.
func (r *manyRounds) summary(material string) (delta map[string]any, finish string) {
	n := len(r.made)
	r.calls++
	r.previous = material
	say := func(text string) (map[string]any, string) { return map[string]any{"content": text}, "stop" }
	switch n % moods {
	case 0: // forgets nearly everything
		return say(fmt.Sprintf("## Goal\nKeep the shop running.\n\n## Done and open\nRound %d was looked at; some files, some commands and an error.", n+1))
	case 1: // rewords, and changes what it had noted
		return say(fmt.Sprintf("## Goal\nThe store shall go on.\n\n## Facts\n- A rates module, a restart, a failing query (no. %d).\n- Paths like rates_%02d.py came up.", n+1, n+40))
	case 2: // runs on
		return say("## Facts\n" + strings.Repeat(fmt.Sprintf("- In round %d one more thing was said, and it was said at length. ", n+1), 400))
	case 3: // repeats all that it was shown
		return say(material)
	}
	return r.failure(n, r.calls)
}

// failure is what is no summary at all; the second try of a round mostly is none, too.
func (r *manyRounds) failure(n, try int) (delta map[string]any, finish string) {
	switch (n/moods + try) % 4 {
	case 0:
		return map[string]any{"content": ""}, "stop"
	case 1:
		return map[string]any{"content": "Sure! How can I help you today?"}, "stop"
	case 2:
		return map[string]any{"tool_calls": []any{map[string]any{"index": 0, "id": "c", "type": "function", "function": map[string]any{"name": "shell", "arguments": "{}"}}}}, "tool_calls"
	default:
		return map[string]any{"content": "## Goal\nThe sum of it all is"}, "length"
	}
}

// check looks every fact up.
func (r *manyRounds) check() {
	r.t.Helper()
	last := r.made[len(r.made)-1].Content
	for _, f := range r.facts {
		if !strings.Contains(last, f.text) && !r.find(f) {
			r.t.Errorf("%s %q of message #%d is neither in the ledger nor found", f.kind, f.text, f.seq)
		}
	}
	fourth, second := mean(r.made[15:20]), mean(r.made[10:15])
	if fourth > second+r.policy.limit/20 {
		r.t.Errorf("got %d tokens in rounds 16 to 20 and %d in 11 to 15, want no trend", fourth, second)
	}
	if !slices.ContainsFunc(r.made, func(m core.Summary) bool { return strings.HasPrefix(m.Note, "fallback: ") }) {
		r.t.Error("no round fell back: the summarizer was not as bad as it should be")
	}
}

// find reports whether the agent finds the fact's message with search_history.
func (r *manyRounds) find(f planted) bool {
	r.t.Helper()
	query := `"` + strings.ReplaceAll(f.text, `"`, " ") + `"`
	got := apptest.SendMessage(r.t, r.Client, core.SendMessage{SessionID: r.id, Content: "look up " + query})
	for _, m := range got.Messages {
		if m.Role == core.RoleTool && strings.Contains(m.Content, fmt.Sprintf(", #%d, ", f.seq)) {
			return true
		}
	}
	return false
}

func mean(made []core.Summary) int {
	n := 0
	for _, m := range made {
		n += m.TokenCount
	}
	return n / len(made)
}

// roundOf returns the messages of round n and the facts in them; their seq counts from
// the first message.
func roundOf(t testing.TB, n int) ([]planted, string) {
	t.Helper()
	path := []string{"services/billing/internal/rates_%02d.go", `C:\Deploy\stage-%02d\install.ps1`, "src/components/Cart%02d.tsx", "/etc/nginx/conf.d/shop-%02d.conf", "docs/Vertrag_%02d.docx"}
	command := []string{"kubectl -n shop rollout restart deploy/web-%02d", "psql -h db-%02d -c 'select count(*) from orders'", "go test ./services/p%02d/... -run TestTotals", "npm run build -- --mode=stage%02d", "git push origin release/%02d"}
	problem := []string{"panic: runtime error: slot %02d out of range", "psycopg.errors.UndefinedTable: relation orders_%02d does not exist",
		"TypeError: Cannot read properties of undefined (reading total%02d)", "java.lang.IllegalStateException: order %02d is closed", "error TS23%02d: Type string is not assignable to type Money"}
	facts := []planted{
		{"path", fmt.Sprintf(path[n%len(path)], n), 0},
		{"command", fmt.Sprintf(command[n%len(command)], n), 1},
		{"error", fmt.Sprintf(problem[n%len(problem)], n), 2},
	}
	said := "Please look at " + facts[0].text + " next, it worked on 12/03/2025 and/or before."
	result := strings.Repeat("ok  \texample.com/shop/internal/tax\t0.004s\n", n%4) + facts[2].text + "\n\tat handler (step 3 of 7)\n" +
		strings.Repeat("INFO the rest of the log says nothing of interest\n", 40) + fmt.Sprintf("exit status %d", 1+n%3)
	return facts, talked(t, said, facts[1].text, result) + history(60)
}
