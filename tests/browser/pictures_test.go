package browser_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

const (
	sampleConversation = "../../app/eval/data/chat.jsonl"
	largestPicture     = 150_000 // bytes
)

// TestShowPictures takes the README's pictures of the page, of a sample conversation: make page-pictures.
func TestShowPictures(t *testing.T) {
	dir := os.Getenv("BOBBIN_PAGE_PICTURES")
	if dir == "" {
		t.Skip("BOBBIN_PAGE_PICTURES says where they go: make page-pictures")
	}
	var questions []string
	answers := map[string]string{}
	for line := range strings.Lines(string(apptest.Must(os.ReadFile(sampleConversation))(t))) {
		var m struct{ Role, Content string }
		apptest.Must(true, json.Unmarshal([]byte(line), &m))(t)
		switch {
		case m.Role == "user":
			questions = append(questions, m.Content)
		case m.Role == "assistant" && answers[questions[len(questions)-1]] == "":
			answers[questions[len(questions)-1]] = m.Content
		}
	}
	b := newBobbin(t, setup{database: dbtest.MigratedSQLiteURL(t), window: 5000, bare: true, say: func(question string) string { return answers[question] }})
	b.play(t, "pictures", "readme", map[string]any{"dir": dir, "questions": questions[:36]}, nil)
	for _, name := range []string{"page-chat.png", "page-context.png"} {
		info := apptest.Must(os.Stat(filepath.Join(dir, name)))(t)
		if info.Size() > largestPicture {
			t.Errorf("%s has %d bytes, want at most %d", name, info.Size(), largestPicture)
		}
	}
}
