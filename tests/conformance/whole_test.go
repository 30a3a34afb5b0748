package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/app/core"
)

// maxWholeCost is how much more CPU a turn may take whose request has the whole history, than a
// native one.
const maxWholeCost = 2.0

// A client sends the whole conversation with each message, of many times the model's window:
// every prompt fits, the log has each message once, edits and new answers are branches, and
// requests for titles are not in it.
func TestShowOpenAIWhole(t *testing.T) {
	turns, long := 26, os.Getenv("BOBBIN_TEST_LONG") != ""
	if long {
		turns = 500
	}
	rows := [][]string{{"database", "turns", "prompts", "over the window", "messages sent", "in the log", "branches", "side calls", "in the log", "largest body", "CPU a turn", "native", "ratio"}}
	for database, url := range databases() {
		var plain time.Duration
		if long {
			plain = nativeCPU(t, newBobbin(t, url(t)), turns)
		}
		w := &wholeClient{bobbin: newBobbin(t, url(t))}
		w.converse(t, turns)
		messages := (&conversation{bobbin: w.bobbin}).log(t, w.session)
		w.checkLog(t, messages)
		ratio := float64(w.cpu) / float64(max(plain, 1))
		rows = append(rows, []string{database, strconv.Itoa(turns), strconv.FormatInt(w.small.Requests()-w.small.Summaries(), 10), strconv.FormatInt(w.small.Rejected(), 10),
			strconv.Itoa(w.sent), strconv.Itoa(len(messages)), strconv.Itoa(w.branches), strconv.Itoa(w.asides), strconv.Itoa(countAsides(messages)), fmt.Sprintf("%d KB", w.largest>>10),
			(w.cpu / time.Duration(turns)).Round(10 * time.Microsecond).String(), (plain / time.Duration(turns)).Round(10 * time.Microsecond).String(), fmt.Sprintf("%.2f", ratio)})
		if n := w.small.Rejected(); n > 0 {
			t.Errorf("%s: got %d prompts over the window, want none", database, n)
		}
		if plain > 0 && ratio >= maxWholeCost {
			t.Errorf("%s: a turn takes %.2f times the CPU of a native one, want less than %v", database, ratio, maxWholeCost)
		}
	}
	logTable(t, rows)
}

// questionOf returns the text of a turn. The first one is a long text that was pasted.
func questionOf(turn int) string {
	if turn == 0 {
		return "Turn 0: " + differentWords(600)
	}
	return fmt.Sprintf("Turn %d: %s?", turn, strings.Repeat("what does the loom do with the red thread, and where is the shuttle now ", 5))
}

// differentWords returns a text of so many words.
func differentWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	return strings.Join(words, " ")
}

// nativeCPU returns the CPU that Bobbin takes for so many turns of the native API.
func nativeCPU(t *testing.T, b *bobbin, turns int) time.Duration {
	t.Helper()
	session, err := b.CreateSession(t.Context(), core.Session{Agent: "reader"})
	must(t, err)
	before := b.cpu(t)
	for i := range turns {
		answer, err := b.SendAndWait(t.Context(), core.SendMessage{SessionID: session.ID, Content: questionOf(i)})
		must(t, err)
		if answer.Run.Status != core.RunSucceeded {
			t.Fatalf("turn %d: got the run %s", i, answer.Run.Status)
		}
	}
	return b.cpu(t) - before
}

// cpu returns the CPU that the process has taken so far, 0 where the system does not say.
func (b *bobbin) cpu(t *testing.T) time.Duration {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.now.Cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, in hundredths of a second
		n, err := strconv.ParseInt(field, 10, 64)
		must(t, err)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// wholeClient is a chat page that sends its whole history each time.
type wholeClient struct {
	*bobbin

	session  core.SessionID
	history  []object
	sent     int // messages that belong in the log, with their answers
	branches int
	asides   int
	largest  int // bytes of a body
	cpu      time.Duration
}

// converse sends so many turns; their CPU is measured without edits, new answers and side calls.
func (w *wholeClient) converse(t *testing.T, turns int) {
	t.Helper()
	for i := range turns {
		before := w.bobbin.cpu(t)
		w.send(t, "append", append(w.history, user(questionOf(i))))
		w.cpu += w.bobbin.cpu(t) - before
		w.sent += 2
		switch {
		case i%25 == 24:
			w.send(t, "branch", append(w.history[:len(w.history)-2:len(w.history)-2], user(questionOf(i)+" I mean the blue one.")))
			w.sent += 2
			w.branches++
		case i%25 == 12:
			w.send(t, "branch", w.history[:len(w.history)-1:len(w.history)-1])
			w.sent++
			w.branches++
		case i == 0, i%10 == 5:
			kept := w.history
			w.send(t, "side", []object{user(asideMark + " of at most five words for the conversation that follows, and nothing else. Use the language of the conversation. <chat_history>" + questionOf(i) + " ASSISTANT: </chat_history>")})
			w.history = kept
			w.asides++
		}
	}
}

// asideMark is in requests for titles.
const asideMark = "Write a title"

func countAsides(messages []core.Message) int {
	n := 0
	for _, m := range messages {
		if strings.Contains(m.Content, asideMark) {
			n++
		}
	}
	return n
}

// send sends a history and adds the answer.
func (w *wholeClient) send(t *testing.T, want string, history []object) {
	t.Helper()
	body, err := json.Marshal(object{"model": "reader", "messages": history, "metadata": object{"session_id": "whole"}})
	must(t, err)
	w.largest = max(w.largest, len(body))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+w.addr+"/v1/chat/completions", bytes.NewReader(body))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+aliceKey)
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	if got := response.Header.Get("X-Bobbin-History"); response.StatusCode != http.StatusOK || got != want {
		t.Fatalf("message %d: got %d, the history %s, %s; want %s", len(history), response.StatusCode, got, answer, want)
	}
	if want != "side" {
		w.session = core.SessionID(response.Header.Get("X-Session-Id"))
	}
	w.history = append(history, assistant(decode[completion](t, answer).text()))
}

// checkLog checks that the log is what was sent.
func (w *wholeClient) checkLog(t *testing.T, messages []core.Message) {
	t.Helper()
	wantEqual(t, "messages in the log", len(messages), w.sent)
	wantEqual(t, "side calls in the log", countAsides(messages), 0)
	var want []string
	for _, m := range w.history {
		want = append(want, fmt.Sprintf("%s: %s", m["role"], m["content"]))
	}
	if path(messages) != strings.Join(want, "\n") {
		t.Error("the current path is not the client's history")
	}
}
