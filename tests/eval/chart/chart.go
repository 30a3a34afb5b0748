// Package chart draws the pictures of the documentation: line charts and bars as SVG.
package chart

import (
	"math"
	"strconv"
	"strings"
)

// Chart is a line chart with turns from left to right and sizes from below, drawn as SVG: one
// file that shows the same in a browser, on a page of a repository and in print, in light and in
// dark surroundings, without scripts, links or fonts of its own. The libraries that there are for
// Go draw everything, bring a rasterizer and fonts along, or are not maintained; what is needed
// here is two scales and some lines. The same Chart gives the same bytes.
type Chart struct {
	Title    string
	Subtitle string
	XLabel   string
	YLabel   string
	Marks    string // what the marks of the lines mean, for the legend
	Caption  string // below everything; empty = none
	Lines    []Line
	Rules    []Rule
	Top      float64 // the largest value that is shown, what is over it is cut off; 0 = all are shown
}

// Line is a series of values.
type Line struct {
	Name   string
	Points []Point // X must not fall
	Marks  []Point // places of note on the line
	Marked int     // what is told as their number, where one may stand for several; 0 = the marks
	Faint  bool    // stands behind the others, dotted
}

// Rule is a horizontal line across the chart.
type Rule struct {
	Name string
	Y    float64
}

// Point is a value at a place.
type Point struct{ X, Y float64 }

// The sizes of the picture, in pixels.
const (
	width       = 960
	height      = 460
	left        = 76
	right       = 176
	top         = 92
	bottom      = 64
	rowHeight   = 16 // of the marks of a line below the chart
	captionRoom = 24
	rowGap      = 44 // between the axis and the first row of marks
	fontSize    = 13
	labelHeight = 15
	letter      = 6.9 // about how wide a letter is
	mostColumns = 700 // of a line; more values share a column
	plotWidth   = width - left - right
	plotHeight  = height - top - bottom
)

// hues are how many colors lines have; the next line begins anew.
const hues = 6

// scale places values in the picture.
type scale struct {
	from, to   float64
	start, end float64 // pixels
}

func (s scale) at(v float64) float64 {
	if s.to == s.from {
		return s.start
	}
	return s.start + (v-s.from)/(s.to-s.from)*(s.end-s.start)
}

// picture is a Chart at work.
type picture struct {
	Chart
	x, y scale
	rows bool // marks stand in rows below the chart
	b    strings.Builder
}

// SVG returns the picture. A chart without a point has axes only.
func (c Chart) SVG() []byte {
	p := &picture{Chart: c}
	p.fit()
	p.head(p.tall())
	p.axes()
	for i, r := range p.Rules {
		p.rule(i, r)
	}
	p.add(`<g clip-path="url(#plot)">` + "\n")
	for _, faint := range []bool{true, false} {
		hue := 0
		for _, l := range p.Lines {
			if l.Faint == faint {
				p.line(l, hue)
			}
			if !l.Faint {
				hue++
			}
		}
	}
	p.add("</g>\n")
	p.marks()
	p.ruleNames()
	p.legend()
	p.caption()
	p.add("</svg>\n")
	return []byte(p.b.String())
}

// fit finds the scales.
func (p *picture) fit() {
	first, last, most, marked := math.Inf(1), math.Inf(-1), 1.0, 0
	for _, l := range p.Lines {
		for _, at := range l.Points {
			first, last = math.Min(first, at.X), math.Max(last, at.X)
			most = math.Max(most, at.Y)
		}
		if len(l.Marks) > 0 {
			marked++
		}
	}
	if last < first {
		first, last = 1, 1
	}
	if first == last {
		last++
	}
	if most = ceiling(most); p.Top > 0 {
		most = p.Top
	}
	p.rows = marked > 0 && !p.single()
	p.x = scale{first, last, left, left + plotWidth}
	p.y = scale{0, most, top + plotHeight, top}
}

// steps are the distances between ticks that read well, of a power of ten.
func steps() []float64 { return []float64{1, 2, 2.5, 5, 10} }

// distance returns a distance between ticks so that there are about so many.
func distance(span float64, ticks int) float64 {
	rough := math.Max(span, 1) / float64(ticks)
	power := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, s := range steps() {
		if d := s * power; d >= rough && d == math.Trunc(d) {
			return d
		}
	}
	return math.Max(10*power, 1)
}

// wantedTicks is about how many ticks an axis has.
const wantedTicks = 6

// ceiling returns the next tick at or above the value.
func ceiling(v float64) float64 {
	d := distance(v, wantedTicks)
	return math.Ceil(v/d) * d
}

// number writes a value of an axis: 12,000 is 12K.
func number(v float64) string {
	switch {
	case v >= 1e6 && math.Mod(v, 1e5) == 0:
		return strconv.FormatFloat(v/1e6, 'f', -1, 64) + "M"
	case v >= 1e3 && math.Mod(v, 100) == 0:
		return strconv.FormatFloat(v/1e3, 'f', -1, 64) + "K"
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// px writes a place in the picture.
func px(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
