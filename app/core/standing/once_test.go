package standing_test

import (
	"os"
	"strings"
	"testing"
)

// Requests for once, stories, questions and facts about others set nothing, although they are
// made of the words of instructions. The rules were made with these, too.
func TestRequestsForOnce(t *testing.T) {
	t.Parallel()
	const mistaken = 7 // by the tables of words
	raw, err := os.ReadFile("testdata/once.txt")
	if err != nil {
		t.Fatal(err)
	}
	if s := measureNegatives(t, strings.Split(strings.TrimSpace(string(raw)), "\n")); s.right < s.all-mistaken {
		t.Errorf("got %s, want all but %d", s, mistaken)
	}
}
