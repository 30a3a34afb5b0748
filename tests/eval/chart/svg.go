package chart

import (
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// style has the colors twice: those who read on dark ground get the second. Lines
// have a contrast of at least 3 to their ground, words one of 4.5 (WCAG 2).
const style = `<style>
svg{font:13px system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;color-scheme:light dark}
.ground{fill:#fff}.ink{fill:#1f2328}.soft{fill:#59636e}.grid{stroke:#e4e8ec}.axis{stroke:#8c959f}.faint{stroke:#8c959f}
.rule{stroke:#59636e}.l0{stroke:#0b62d6}.l1{stroke:#c2410c}.l2{stroke:#0a7d55}.l3{stroke:#8b3fc1}.l4{stroke:#b3124f}.l5{stroke:#6b5d00}
.f0{fill:#0b62d6}.f1{fill:#c2410c}.f2{fill:#0a7d55}.f3{fill:#8b3fc1}.f4{fill:#b3124f}.f5{fill:#6b5d00}
.halo{stroke:#fff}.title{font-size:17px;font-weight:600}.area{opacity:.1}
@media(prefers-color-scheme:dark){
.ground{fill:#14181d}.ink{fill:#e8ebee}.soft{fill:#a3adb8}.grid{stroke:#2a3138}.axis{stroke:#717b86}.faint{stroke:#8b95a0}
.rule{stroke:#a3adb8}.l0{stroke:#62a8ff}.l1{stroke:#ff9a5c}.l2{stroke:#43cf9b}.l3{stroke:#c99bff}.l4{stroke:#ff7eae}.l5{stroke:#d8c44a}
.f0{fill:#62a8ff}.f1{fill:#ff9a5c}.f2{fill:#43cf9b}.f3{fill:#c99bff}.f4{fill:#ff7eae}.f5{fill:#d8c44a}
.halo{stroke:#14181d}.area{opacity:.16}
}
</style>
`

func (p *picture) add(format string, args ...any) { fmt.Fprintf(&p.b, format, args...) }

// mostLetters is how long a word of the picture may be.
const mostLetters = 110

// escaped returns a word as XML holds it: what it cannot hold becomes U+FFFD.
func escaped(words string) string {
	if letters := []rune(words); len(letters) > mostLetters {
		words = string(letters[:mostLetters-1]) + "…"
	}
	var b strings.Builder
	if err := xml.EscapeText(&b, []byte(words)); err != nil {
		return "" // a Builder takes everything
	}
	return b.String()
}

// text writes a word at a place.
func (p *picture) text(x, y float64, anchor, class, words string) {
	p.add(`<text x="%s" y="%s" text-anchor="%s" class="%s">%s</text>`+"\n", px(x), px(y), anchor, class, escaped(words))
}

// stroke writes a straight line.
func (p *picture) stroke(from, to Point, class, more string) {
	p.add(`<line x1="%s" y1="%s" x2="%s" y2="%s" class="%s"%s/>`+"\n", px(from.X), px(from.Y), px(to.X), px(to.Y), class, more)
}

// tall returns the height of the picture.
func (p *picture) tall() int {
	tall := height
	if p.rows {
		tall += p.markRows()*rowHeight + rowGap - bottom/2
	}
	if p.Caption != "" {
		tall += captionRoom
	}
	return tall
}

// caption writes the words below everything.
func (p *picture) caption() {
	if p.Caption != "" {
		p.text(24, float64(p.tall()-captionRoom/2), "start", "ink", p.Caption)
	}
}

// head begins the file of a picture of this height.
func (p *picture) head(tall int) {
	p.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n", width, tall, width, tall)
	p.add(`<title id="t">%s</title>`+"\n"+`<desc id="d">%s</desc>`+"\n", escaped(p.Title), escaped(p.Subtitle))
	p.b.WriteString(style)
	p.add(`<clipPath id="plot"><rect x="%d" y="%d" width="%d" height="%d"/></clipPath>`+"\n", left, top-2, plotWidth+4, plotHeight+4)
	p.add(`<rect class="ground" width="%d" height="%d" rx="6"/>`+"\n", width, tall)
	p.text(24, 32, "start", "ink title", p.Title)
	p.text(24, 53, "start", "soft", p.Subtitle)
}

// axes draws both axes with their ticks.
func (p *picture) axes() {
	for v, d := 0.0, distance(p.y.to, wantedTicks); v <= p.y.to; v += d {
		y := p.y.at(v)
		p.stroke(Point{left, y}, Point{left + plotWidth, y}, "grid", "")
		p.text(left-10, y+4, "end", "soft", number(v))
	}
	base := p.y.at(0)
	p.stroke(Point{left, base}, Point{left + plotWidth, base}, "axis", "")
	d := distance(p.x.to-p.x.from, 2*wantedTicks)
	for v := math.Ceil(p.x.from/d) * d; v <= p.x.to; v += d {
		x := p.x.at(v)
		p.stroke(Point{x, base}, Point{x, base + 5}, "axis", "")
		p.text(x, base+20, "middle", "soft", number(v))
	}
	p.text(left+plotWidth/2, base+40, "middle", "ink", p.XLabel)
	middle := float64(top + plotHeight/2)
	p.add(`<text transform="translate(20 %s) rotate(-90)" text-anchor="middle" class="ink">%s</text>`+"\n", px(middle), escaped(p.YLabel))
}

// dashes tell the rules apart.
func dashes(i int) string {
	return []string{"", "7 4", "2 4", "9 3 2 3"}[i%4]
}

// rule draws a horizontal line.
func (p *picture) rule(i int, r Rule) {
	y := p.y.at(math.Min(r.Y, p.y.to))
	more := ` stroke-width="1.3"`
	if d := dashes(i); d != "" {
		more += ` stroke-dasharray="` + d + `"`
	}
	p.stroke(Point{left, y}, Point{left + plotWidth, y}, "rule", more)
}

// ruleNames writes the names of the rules beside them, none over another.
func (p *picture) ruleNames() {
	rules := slices.Clone(p.Rules)
	slices.SortStableFunc(rules, func(a, b Rule) int { return int(b.Y - a.Y) })
	lowest := math.Inf(-1)
	for _, r := range rules {
		y := math.Max(p.y.at(math.Min(r.Y, p.y.to))+4, lowest+labelHeight)
		lowest = y
		p.text(left+plotWidth+8, y, "start", "soft", r.Name)
	}
}

// line draws a series.
func (p *picture) line(l Line, hue int) {
	points := thin(l.Points)
	if len(points) == 0 {
		return
	}
	var d strings.Builder
	for i, at := range points {
		command := "L"
		if i == 0 {
			command = "M"
		}
		// Far above the picture, numbers would only grow.
		fmt.Fprintf(&d, "%s%s %s", command, px(p.x.at(at.X)), px(p.y.at(math.Min(at.Y, 2*p.y.to))))
	}
	if l.Faint {
		p.add(`<path d="%s" class="faint" fill="none" stroke-width="2" stroke-dasharray="1 5" stroke-linecap="round"/>`+"\n", d.String())
		return
	}
	if p.single() {
		base := px(p.y.at(0))
		p.add(`<path d="%sL%s %sL%s %sZ" class="f%d area"/>`+"\n", d.String(),
			px(p.x.at(points[len(points)-1].X)), base, px(p.x.at(points[0].X)), base, hue%hues)
	}
	p.add(`<path d="%s" class="l%d" fill="none" stroke-width="2" stroke-linejoin="round"/>`+"\n", d.String(), hue%hues)
}

// single reports whether there is one line only, besides faint ones.
func (p *picture) single() bool {
	n := 0
	for _, l := range p.Lines {
		if !l.Faint {
			n++
		}
	}
	return n == 1
}

// thin returns the points with the smallest and the largest of each column where
// there are more points than columns.
func thin(points []Point) []Point {
	if len(points) <= mostColumns {
		return points
	}
	var out []Point
	for c := range mostColumns {
		part := points[c*len(points)/mostColumns : (c+1)*len(points)/mostColumns]
		low, high := 0, 0
		for i, at := range part {
			if at.Y < part[low].Y {
				low = i
			}
			if at.Y > part[high].Y {
				high = i
			}
		}
		out = append(out, part[min(low, high)])
		if low != high {
			out = append(out, part[max(low, high)])
		}
	}
	return out
}

// markRows is how many rows of marks there are.
func (p *picture) markRows() int {
	n := 0
	for _, l := range p.Lines {
		if len(l.Marks) > 0 {
			n++
		}
	}
	return n
}

// marks draws the marks: on the line if there is one, else each line's in a row of
// its own below the chart.
func (p *picture) marks() {
	row, hue := 0, 0
	for _, l := range p.Lines {
		if l.Faint {
			continue
		}
		for _, at := range thin(l.Marks) {
			x := p.x.at(at.X)
			if p.rows {
				y := p.y.at(0) + rowGap + float64(row*rowHeight) + 6
				p.stroke(Point{x, y}, Point{x, y + 10}, fmt.Sprintf("l%d", hue%hues), ` stroke-width="2"`)
				continue
			}
			p.add(`<circle cx="%s" cy="%s" r="4" class="f%d halo" stroke-width="1.5"/>`+"\n", px(x), px(p.y.at(math.Min(at.Y, p.y.to))), hue%hues)
		}
		if p.rows && len(l.Marks) > 0 {
			p.text(left+plotWidth+8, p.y.at(0)+rowGap+float64(row*rowHeight)+15, "start", "soft", fmt.Sprintf("%s: %d", l.Name, max(l.Marked, len(l.Marks))))
			row++
		}
		hue++
	}
	if p.rows {
		p.text(6, p.y.at(0)+rowGap+15, "start", "soft", p.Marks)
	}
}

// legend names the lines, above the chart.
func (p *picture) legend() {
	x, hue := 24.0, 0
	const y = 76
	for _, l := range p.Lines {
		if l.Faint {
			p.stroke(Point{x + 1, y - 4}, Point{x + 22, y - 4}, "faint", ` stroke-width="2" stroke-dasharray="1 5" stroke-linecap="round"`)
		} else {
			p.stroke(Point{x, y - 4}, Point{x + 22, y - 4}, fmt.Sprintf("l%d", hue%hues), ` stroke-width="3"`)
			hue++
		}
		p.text(x+28, y, "start", "ink", l.Name)
		x += 28 + letter*float64(len([]rune(l.Name))) + 24
	}
	if !p.rows && p.markRows() == 1 {
		p.add(`<circle cx="%s" cy="%d" r="4" class="f0"/>`+"\n", px(x+5), y-4)
		p.text(x+16, y, "start", "ink", p.Marks)
	}
}
