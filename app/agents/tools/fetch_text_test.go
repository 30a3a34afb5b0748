package tools_test

import (
	"net/http"
	"strings"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/tests/must"
)

// page serves a page and fetches it.
func page(t *testing.T, kind, body string) tools.Page {
	t.Helper()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		_, _ = w.Write([]byte(body))
	})
	got := must.Get(tools.NewFetcher(s.options()).Get(t.Context(), tools.Request{URL: s.at("a.example", "/dir/page")}))(t)
	return got
}

// The characters of a page are those that it was written in.
func TestCharsets(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 2000)
	tests := []struct{ name, kind, body, want string }{
		{"told by the server", "text/plain; charset=iso-8859-1", "Gr\xfc\xdfe", "Grüße"},
		{"told by the page", "text/html", "<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"},
		{"Japanese", "text/html; charset=shift_jis", "<p>\x93\xfa\x96{", "日本"},
		{"Chinese", "text/plain; charset=gbk", "\xc4\xe3\xba\xc3", "你好"},
		{"UTF-16", "text/plain; charset=utf-16le", "h\x00i\x00", "hi"},
		{"mark", "text/plain", "\xef\xbb\xbfhi", "hi"},
		{"UTF-8 that nobody told, after many letters", "text/plain", long + "ü", long + "ü"},
		{"nothing told, no UTF-8", "text/plain", "Gr\xfc\xdfe", "Grüße"},
		{"not known", "text/plain; charset=klingon", "Grüße", "Grüße"},
		{"wrong UTF-8", "text/plain; charset=utf-8", "a\xffb\x00c", "a\uFFFDb\uFFFDc"},
		{"tags nobody sees", "text/plain", "a\U000E0049b", "ab"},
		{"tags nobody sees in HTML", "text/html", "<p>a\U000E0049\U000E0067&#xE006E;b", "ab"},
		{"JSON", "application/json", `{"a":["ü",1.50]}`, "{\n \"a\": [\n  \"ü\",\n  1.50\n ]\n}"},
		{"broken JSON", "application/json", `{"a":`, `{"a":`},
		{"XML", "application/xml", "<a>x</a>\n", "<a>x</a>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := page(t, tt.kind, tt.body); got.Text != tt.want {
				t.Errorf("got %q, want %q", got.Text, tt.want)
			}
		})
	}
}
