package tools_test

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/agents/tools"
)

// page serves a page and fetches it.
func page(t *testing.T, kind, body string) tools.Page {
	t.Helper()
	s := newSite(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = []string{kind}
		_, _ = w.Write([]byte(body))
	})
	got, err := tools.NewFetcher(s.options()).Get(t.Context(), tools.Request{URL: s.at("a.example", "/dir/page")})
	if err != nil {
		t.Fatal(err)
	}
	got.Text = strings.ReplaceAll(got.Text, s.at("a.example", ""), "http://a.example")
	return got
}

// A page becomes its title, headings, links, lists and paragraphs.
func TestReadableText(t *testing.T) {
	t.Parallel()
	got := page(t, "text/html; charset=utf-8", `<!DOCTYPE html><html><head><title>
 A  page &amp; more </title><style>p{}</style><script>alert("<p>no</p>")</script></head>
<body onload="x()"><nav><a href="/">Home</a> <a href="#top">Top</a></nav>
<h1>Great  <em>news</em></h1><p>One<br>two,
  three <a href="other?x=1">a <b>link</b></a>, <a href="javascript:alert(1)">no link</a>, <a href="http://u:p@x/">nor this</a>.</p>
<ul><li>first<li><p>second</p></li></ul>
<h2>Table</h2><table><tr><th>k</th><th>v</th></tr><tr><td>a</td><td>1</td></tr></table>
<pre>code  {
	x }</pre><img src="x.png" alt="a cat"><svg><text>drawing</text></svg><noscript>no</noscript><!-- comment -->
<template><p>no</p></template><textarea>typed</textarea></body></html>`)
	want := `[Home](http://a.example/) Top

# Great news

One
two, three [a link](http://a.example/dir/other?x=1), no link, nor this.

- first
- second

## Table

| k | v
| a | 1

code  {
	x }

[image: a cat] typed`
	if diff := cmp.Diff(want, got.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if got.Title != "A page & more" || got.MediaType != "text/html" || got.Cut {
		t.Errorf("got title %q, type %q, cut %v", got.Title, got.MediaType, got.Cut)
	}
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

// No page makes reading it slow, or its text long or invalid.
func TestAdversePages(t *testing.T) {
	t.Parallel()
	const most = 2 << 20
	for name, body := range map[string]string{
		"nested":          strings.Repeat("<div>", 200_000) + "x",
		"links in links":  strings.Repeat("<a href=x>", 150_000),
		"long addresses":  "<base href=x>" + strings.Repeat("<a href=x>y</a>", 100_000),
		"never closed":    "<script>" + strings.Repeat("x", most),
		"attributes":      "<p " + strings.Repeat("a=b ", 400_000) + ">x",
		"one long word":   "<p>" + strings.Repeat("x", most-100),
		"lists":           strings.Repeat("<ul><li>", 200_000),
		"entities":        strings.Repeat("&#0;&#xD800;&amp;", 100_000),
		"closing only":    strings.Repeat("</a></pre></li>", 100_000),
		"cut in a letter": strings.Repeat("ü", most/2+10),
		"titles":          strings.Repeat("<title>x</title>", 100_000),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := page(t, "text/html; charset=utf-8", body)
			if len(got.Text) > most || !utf8.ValidString(got.Text) || len(got.Title) > 300 {
				t.Errorf("got %d bytes, valid %v, title of %d", len(got.Text), utf8.ValidString(got.Text), len(got.Title))
			}
		})
	}
}
