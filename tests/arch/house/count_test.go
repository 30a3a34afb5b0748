package house_test

import (
	"slices"
	"testing"

	"bobbin/tests/arch"
)

// TestCounts holds the rules of counting.
func TestCounts(t *testing.T) {
	t.Parallel()
	s := &source{files: map[string]int{}, arrows: map[arrow]bool{}}
	for name, text := range map[string]string{
		"app/a/x/x.go": "// Package x.\npackage x\n\nimport \"bobbin/app/b\"\n\n/* a\ncomment */ var text = `two\nlines`\n\n" +
			"func told() { b.F() }\nfunc open() {}\nfunc loadTurn() {}\nfunc Seen() {}\n",
		"app/a/y.go": "package a\n\ntype one interface{ Do(int) }\ntype two interface{ Do(string) }\ntype done struct{}\n\nfunc (*done) Do(int) {\n\t// does\n}\n",
		"app/b/b.go": "package b\n\nimport _ \"bobbin/app/a\"\n\nfunc F() {}\n",
	} {
		f, err := arch.ParseFile(name, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		s.add(t, f, []byte(text))
	}
	want := map[string]string{
		"lines": "27", "lines of code, without comments and blanks": "17", "packages": "3", "interfaces": "2",
		"unexported functions and methods": "3", "named by one word": "2",
		"lines of eval": "0", "lines of wire and app's own files": "27", "functions per 1,000 lines": "222",
		"named by one word, %": "66.7", "bare participles": "1", "lines of the longest function": "3",
		"imports between packages of app": "2", "imports between folders of app": "2", "imports between folders of app in a circle": "2",
	}
	for _, f := range slices.Concat(s.figures(), s.partFigures()) {
		if w, ok := want[f.name]; ok && f.String() != w {
			t.Errorf("%s: got %s, want %s", f.name, f, w)
		}
	}
	for _, c := range []struct {
		name            string
		one, two, three int
		want            string
	}{
		{"once a turn", 30, 30 + sessions, 30 + 2*sessions, "1"},
		{"a background loop", 30, 32, 29, "0"},
		{"a burst of a background loop", 30, 30 + 5*sessions, 32, "0"},
	} {
		block := "bobbin/app/a/x/x.go:10.15,10.22"
		got := s.passed(map[string]int{block: c.one}, map[string]int{block: c.two}, map[string]int{block: c.three})
		if got[0].String() != c.want {
			t.Errorf("%s: got %s functions on the way, want %s", c.name, got[0], c.want)
		}
	}
}
