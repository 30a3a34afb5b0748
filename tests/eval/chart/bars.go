package chart

import "fmt"

// Bars is a chart of shares: a bar for each row, of parts that have the same colors in all.
// It is drawn as a Chart is.
type Bars struct {
	Title    string
	Subtitle string
	Parts    []string // their names, at most one for each color
	Rows     []Bar
}

// Bar is a row of Bars. Values are shares of 1, one for each part, that add up to at most 1.
type Bar struct {
	Name   string
	Values []float64
}

// The sizes of Bars, in pixels.
const (
	barsLeft   = 150
	barHeight  = 18
	barGap     = 10
	barsBottom = 44
)

// SVG returns the picture.
func (b Bars) SVG() []byte {
	p := &picture{Chart: Chart{Title: b.Title, Subtitle: b.Subtitle}}
	for _, name := range b.Parts {
		p.Lines = append(p.Lines, Line{Name: name})
	}
	base := float64(top + len(b.Rows)*(barHeight+barGap) + barGap)
	p.head(int(base) + barsBottom)
	x := scale{0, 100, barsLeft, left + plotWidth}
	for v := 0.0; v <= x.to; v += 20 {
		p.stroke(Point{x.at(v), top}, Point{x.at(v), base}, "grid", "")
		p.text(x.at(v), base+20, "middle", "soft", number(v)+" %")
	}
	for i, row := range b.Rows {
		y := float64(top + barGap + i*(barHeight+barGap))
		p.text(barsLeft-10, y+barHeight-5, "end", "ink", row.Name)
		sum := 0.0
		for hue, v := range row.Values {
			from := x.at(100 * sum)
			sum += v
			p.add(`<rect x="%s" y="%s" width="%s" height="%d" class="f%d"/>`+"\n", px(from), px(y), px(x.at(100*sum)-from), barHeight, hue%hues)
		}
		p.text(x.at(100*sum)+8, y+barHeight-5, "start", "soft", fmt.Sprintf("%.1f %%", 100*sum))
	}
	p.legend()
	p.add("</svg>\n")
	return []byte(p.b.String())
}
