package tools_test

import (
	"slices"
	"testing"
)

// What a page does not show to its readers is not shown to a model either, and the
// model is told that there was something.
func TestHiddenText(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ body, want string }{
		"attribute":            {`<p>a<p hidden>no<p>b`, "a\n\nb"},
		"with a value":         {`<div hidden="hidden">no</div>b`, "b"},
		"found by searching":   {`<div hidden="until-found">a</div>`, "a"},
		"display":              {`<span style="color: red; DISPLAY : None !important">no</span>b`, "b"},
		"with a comment":       {`<span style="display:/**/none">no</span>b`, "b"},
		"visibility":           {`<span style='visibility:hidden'>no</span>b`, "b"},
		"opacity":              {`<span style=opacity:0.0>no</span>b`, "b"},
		"no size":              {`<span style="font-size:0px">no</span>b`, "b"},
		"half visible":         {`<span style="opacity:.5;font-size:10px">a</span>b`, "ab"},
		"image":                {`<img alt=no hidden>b`, "b"},
		"elements that end it": {`<ul><li hidden>no<ul><li>no</ul>no<li>a</ul>b`, "- a\n\nb"},
		"cells":                {`<table><tr><td hidden>no<td>a<tr hidden><td>no<tr><td>b</table>c`, "| a\n| b\n\nc"},
		"never ended":          {`<section><div hidden>no<p>no</section>b`, "b"},
		"end of nothing":       {`<span>a<div hidden></span></b></p></li>no</div>b`, "a\nb"},
		"end of a paragraph":   {`<p>a<div hidden></p>no</div>b`, "a\nb"},
		"end outside a cell":   {`<div><table><tr><td><p hidden></div>no<p>a</table>b`, "|\n\na\n\nb"},
		"other elements":       {`<dialog>no</dialog><canvas>no</canvas><video>no</video><noembed>no</noembed>b`, "b"},
		"open dialog":          {`<dialog open>a</dialog>`, "a"},
		"the whole page":       {`<body style="opacity:0">a`, "a"},
		"ended at once":        {`<script/>no</script><div hidden/>no</div>b<svg/>c`, "bc"},
		"tags nobody sees":     {"<p>a\U000E0049\U000E0067&#xE006E;b", "ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := page(t, "text/html", tt.body)
			hid := !slices.Contains([]string{"found by searching", "image", "half visible", "open dialog", "the whole page", "tags nobody sees"}, name)
			if got.Text != tt.want || got.HasHidden != hid {
				t.Errorf("got %q, hid %v, want %q, %v", got.Text, got.HasHidden, tt.want, hid)
			}
		})
	}
	if got := page(t, "application/xhtml+xml", `<html><script src="x"/><div hidden=""/>a</html>`); got.Text != "a" {
		t.Errorf("XHTML: got %q, want what comes after elements that end at once", got.Text)
	}
	if got := page(t, "text/plain", "a\U000E0049b"); got.Text != "ab" {
		t.Errorf("plain: got %q, want no tag characters", got.Text)
	}
}
