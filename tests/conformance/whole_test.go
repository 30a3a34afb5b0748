package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/core"
)

// A client sends the whole conversation with each message, of many times the model's window:
// every prompt fits, the log has each message once, edits and new answers are branches, and
// requests for titles are not in it.
func TestOpenAIWhole(t *testing.T) {
	for database, url := range databases() {
		w := &wholeClient{bobbin: newBobbin(t, url(t))}
		w.converse(t, 26)
		messages := (&conversation{bobbin: w.bobbin}).log(t, w.session)
		w.checkLog(t, messages)
		if n := w.small.Rejected(); n > 0 {
			t.Errorf("%s: got %d prompts over the window, want none", database, n)
		}
	}
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

// wholeClient is a chat page that sends its whole history each time.
type wholeClient struct {
	*bobbin

	session core.SessionID
	history []object
	sent    int // messages that belong in the log, with their answers
}

// converse sends so many turns, with edits, new answers and side calls.
func (w *wholeClient) converse(t *testing.T, turns int) {
	t.Helper()
	for i := range turns {
		w.send(t, "append", append(w.history, user(questionOf(i))))
		w.sent += 2
		switch {
		case i%25 == 24:
			w.send(t, "branch", append(w.history[:len(w.history)-2:len(w.history)-2], user(questionOf(i)+" I mean the blue one.")))
			w.sent += 2
		case i%25 == 12:
			w.send(t, "branch", w.history[:len(w.history)-1:len(w.history)-1])
			w.sent++
		case i == 0, i%10 == 5:
			kept := w.history
			w.send(t, "side", []object{user(asideMark + " of at most five words for the conversation that follows, and nothing else. Use the language of the conversation. <chat_history>" + questionOf(i) + " ASSISTANT: </chat_history>")})
			w.history = kept
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
