package chart_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bobbin/tests/eval/chart"
	"bobbin/tests/seed"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != string(got) {
		t.Errorf("%s: got\n%s\nwant\n%s", file, got, want)
	}
}

func line(name string, values ...float64) chart.Line {
	l := chart.Line{Name: name}
	for i, v := range values {
		l.Points = append(l.Points, chart.Point{X: float64(i + 1), Y: v})
	}
	return l
}

// small is a chart with everything in it.
func small() chart.Chart {
	one, two := line("one", 100, 900, 400), line("two", 50, 60, 70)
	one.Marks, two.Marks = one.Points[2:], two.Points[1:]
	two.Marked = 5
	all := line("all", 100, 1500, 9000)
	all.Faint = true
	return chart.Chart{
		Title: "A <title> & more", Subtitle: "what it is", XLabel: "turn", YLabel: "tokens", Marks: "marks", Caption: "what came of it",
		Lines: []chart.Line{all, one, two}, Rules: []chart.Rule{{Name: "limit", Y: 1000}, {Name: "near it", Y: 990}}, Top: 1200,
	}
}

func TestChartSVG(t *testing.T) {
	t.Parallel()
	golden(t, "several.svg", small().SVG())
	single := small()
	single.Lines = single.Lines[:2]
	golden(t, "single.svg", single.SVG())
}

// wellFormed reads the picture as XML and returns the names of its elements.
func wellFormed(t interface{ Fatalf(string, ...any) }, svg []byte) map[string]int {
	names := map[string]int{}
	d := xml.NewDecoder(bytes.NewReader(svg))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, svg)
		}
		if e, ok := token.(xml.StartElement); ok {
			names[e.Name.Local]++
		}
	}
}

// Whatever is drawn is one well-formed file without scripts, links and fonts, with no
// number that is none.
func TestAnyChart(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		c := chart.Chart{Title: rapid.String().Draw(t, "title"), Marks: "m", Top: rapid.Float64Range(0, 1e7).Draw(t, "top")}
		for range rapid.IntRange(0, 8).Draw(t, "lines") {
			l := chart.Line{Name: rapid.StringMatching(`[a-z<&"]{0,9}`).Draw(t, "name"), Faint: rapid.Bool().Draw(t, "faint")}
			x := 0.0
			for range rapid.IntRange(0, 1500).Draw(t, "points") {
				x += 0.5
				l.Points = append(l.Points, chart.Point{X: x, Y: math.Mod(x*7919, 5000)})
			}
			l.Marks = l.Points[:min(3, len(l.Points))]
			c.Lines = append(c.Lines, l)
		}
		svg := c.SVG()
		names := wellFormed(t, svg)
		if names["svg"] != 1 || names["title"] != 1 || names["script"]+names["a"]+names["image"]+names["foreignObject"] > 0 {
			t.Fatalf("got elements %v, want one picture and no script", names)
		}
		for _, bad := range []string{"NaN", "Inf", "url(http", "@import", "@font-face"} {
			if bytes.Contains(svg, []byte(bad)) {
				t.Fatalf("got %q in the picture, want none", bad)
			}
		}
		if len(svg) > 400_000 {
			t.Fatalf("got %d bytes, want a bounded picture", len(svg))
		}
		if !bytes.Equal(svg, c.SVG()) {
			t.Fatalf("got other bytes the second time, want the same")
		}
	})
}

// Many points become few, and the highest and the lowest are still there.
func TestManyPoints(t *testing.T) {
	t.Parallel()
	l := chart.Line{Name: "x"}
	for i := range 100_000 {
		l.Points = append(l.Points, chart.Point{X: float64(i), Y: 100})
	}
	l.Points[77_777].Y, l.Points[33_333].Y = 1000, 0
	svg := string(chart.Chart{Lines: []chart.Line{l}}.SVG())
	if n := strings.Count(svg, "L"); n > 3000 {
		t.Errorf("got %d places, want at most 3,000", n)
	}
	if !strings.Contains(svg, " 92L") || !strings.Contains(svg, " 396L") {
		t.Errorf("want the highest point at 92 and the lowest at 396 in:\n%.600s", svg)
	}
}

// The colors can be told from their ground, by day and by night (WCAG 2).
func TestContrast(t *testing.T) {
	t.Parallel()
	svg := string(small().SVG())
	style, _, _ := strings.Cut(svg[strings.Index(svg, "<style>"):], "</style>")
	day, night, found := strings.Cut(style, "prefers-color-scheme:dark")
	if !found {
		t.Fatal("got no colors for the dark, want some")
	}
	rule := regexp.MustCompile(`\.(\w+)\{(?:fill|stroke):#([0-9a-f]{3,6})\}`)
	for name, part := range map[string]string{"light": day, "dark": night} {
		colors := map[string]string{}
		for _, m := range rule.FindAllStringSubmatch(part, -1) {
			colors[m[1]] = m[2]
		}
		for class, least := range map[string]float64{"ink": 4.5, "soft": 4.5, "l0": 3, "l1": 3, "l2": 3, "l3": 3, "l4": 3, "l5": 3, "rule": 3, "faint": 3} {
			if got := contrast(colors[class], colors["ground"]); got < least {
				t.Errorf("%s: %s on the ground has a contrast of %.2f, want %.1f", name, class, got, least)
			}
		}
	}
}

func contrast(a, b string) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(hex string) float64 {
	if len(hex) == 3 {
		hex = fmt.Sprintf("%c%c%c%c%c%c", hex[0], hex[0], hex[1], hex[1], hex[2], hex[2])
	}
	sum := 0.0
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[2*i:2*i+2], 16, 8)
		if err != nil {
			return math.NaN()
		}
		v := float64(n) / 255
		if v <= 0.04045 {
			v /= 12.92
		} else {
			v = math.Pow((v+0.055)/1.055, 2.4)
		}
		sum += weight * v
	}
	return sum
}
