package contextwindow

import (
	"math"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Sent is what a prompt has as it is sent, in cl100k_base tokens by section. A plan
// takes markers, shortened messages and the words around a summary at their largest;
// here they are as they are, so no section is larger than the Decision says. It is
// what is shown to people and what a calibration compares with the provider's count.
type Sent struct {
	System  int // the agent's texts, what says that messages are left out, and the overhead of the list
	Tools   int
	Summary int
	Pinned  int
	Tail    int
	Run     int
	Images  int  // of Tail and Run
	Rough   bool // see AsText
}

// Total returns the size of the whole prompt.
func (s Sent) Total() int { return s.System + s.Tools + s.Summary + s.Pinned + s.Tail + s.Run }

// maxImageShare is the part of a prompt that images may make for its count to say
// something about our ruler: providers price them as they like, and an estimate that
// is off by half is then within what a calibration may be off.
const maxImageShare = 0.05

// Comparable reports whether a provider's count of the prompt says something about
// ours.
func (s Sent) Comparable() bool {
	return !s.Rough && float64(s.Images) <= maxImageShare*float64(s.Total())
}

// AsText returns the prompt as it is when an adapter tells its tool turns as text and
// leaves the tools out (llm.Info.NoToolChoice). The text has about the tokens of the
// turns; it is not Comparable.
func (s Sent) AsText() Sent {
	s.Tools, s.Rough = 0, true
	return s
}

// Sections returns the sections of the window as the prompt of the decision fills
// them, in the model's tokens; reserve and free come last.
func (s Sent) Sections(d Decision) []core.ContextPart {
	sizes := []int{s.System, s.Tools, s.Summary, s.Pinned, s.Tail, s.Run}
	out := make([]core.ContextPart, len(sizes), len(sizes)+2)
	used := 0
	for i, n := range sizes {
		out[i] = d.Sections[i] // in the same order
		out[i].Tokens = d.Shown(n)
		used += out[i].Tokens
	}
	return append(out, core.ContextPart{Name: "reserve", Tokens: d.Budget.Reserve},
		core.ContextPart{Name: "free", Tokens: max(d.Budget.Usable-used, 0)})
}

// Used returns the prompt in the model's tokens: the sum of its sections.
func (s Sent) Used(d Decision) int {
	used := 0
	for _, n := range []int{s.System, s.Tools, s.Summary, s.Pinned, s.Tail, s.Run} {
		used += d.Shown(n)
	}
	return used
}

// Shown returns so many cl100k_base tokens in the model's, rounded to the nearest.
func (d Decision) Shown(raw int) int { return int(math.Round(d.Factor * float64(raw))) }

// Shown returns what each message has, in the model's tokens; those of the tail and
// those of the run add up to their sections.
func (p Prompt) Shown(d Decision) []int {
	out := make([]int, len(p.Messages))
	raw, tail := 0, p.Sent.Tail
	for i, m := range p.Messages {
		if raw == tail { // the run begins
			raw, tail = 0, -1
		}
		out[i] = d.Shown(raw+m.Tokens) - d.Shown(raw)
		raw += m.Tokens
	}
	return out
}

// separator is what adapters put between system blocks where they join them.
const separator = "\n\n"

// block appends a system block to the prompt and counts it for a section, with what
// parts it from the one before. All blocks are one message for most providers.
func (p *assembly) block(section *int, text string) {
	if text == "" {
		return
	}
	if n := len(p.System); n == 0 {
		p.Sent.System += messageOverhead
	} else {
		*section += p.count.Text(p.System[n-1]+separator) - p.count.Text(p.System[n-1])
	}
	*section += p.count.Text(text)
	p.System = append(p.System, text)
}

// largeText is how many bytes of a message with files are counted anew for each
// prompt. Larger ones are taken as they were counted when they came, which is at
// most a few tokens more (attach.Tokens).
const largeText = 64 << 10

// size returns what a message costs as it is sent. One that is sent as it is stored
// was counted then; the excerpt of a tool result with the hint how to read on.
func (p *assembly) size(s Slot, m core.Message, out llm.Message) int {
	if s.Place == core.PlaceVerbatim && !s.Orphan {
		stored := !slices.ContainsFunc(m.Parts, varies) && (p.readsResults || out.Content == m.Content)
		if stored || len(out.Content) > largeText {
			return s.Tokens
		}
	}
	out.Parts = p.own(out.Parts)
	return tokens.Prompted(p.count.Text, out)
}

// varies reports whether the part costs one model more than another.
func varies(p core.Part) bool { return p.Attached() || p.Signature != "" }

// own returns the parts that go back to this provider: thoughts that another one has
// signed do not.
func (p *assembly) own(parts []core.Part) []core.Part {
	var out []core.Part
	for _, part := range parts {
		if part.Origin == "" || strings.HasPrefix(part.Origin, p.files.model.Provider+"/") {
			out = append(out, part)
		}
	}
	return out
}

// imageTokens returns what the images of a message were counted with.
func imageTokens(images []llm.Image) int {
	n := 0
	for _, image := range images {
		n += tokens.Image(image.Part)
	}
	return n
}
