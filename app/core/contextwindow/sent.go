package contextwindow

import (
	"math"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
)

// Section is a part of the window that a prompt fills.
type Section int

// The sections, in the order of reports.
const (
	SectionSystem Section = iota // the agent's texts, the left-out block, and the overhead of the message list
	SectionTools
	SectionSummary
	SectionPinned
	SectionStanding
	SectionTail
	SectionRecalled
	SectionRun
	sectionCount
)

// String returns the name of the section.
func (s Section) String() string {
	return [sectionCount]string{"system", "tools", "summary", "pinned", "standing", "tail", "recalled", "run"}[s]
}

// PromptSize is the size of a prompt as it is sent, in cl100k_base tokens by section. A plan
// assumes the maximum for markers, shortened messages and the text around a summary; a PromptSize
// has their real sizes, so no section is larger than the Decision says. It is what people
// see, and what calibration compares with the provider's count.
type PromptSize struct {
	Of       [sectionCount]int
	Media    int  // of the tail and the run: images, and files that are sent as they are
	Hidden   int  // of the tail and the run: reasoning that the provider's usage leaves out
	Rough    bool // see AsText
	Thoughts ThoughtCount
	// Instructions are those of the run, as part of SectionSystem, where they are a message; 0 = they are
	// not.
	Instructions int
}

// Total returns the size of the whole prompt.
func (s PromptSize) Total() (n int) {
	for _, tokens := range s.Of {
		n += tokens
	}
	return n
}

// Counted returns the size of what the provider counts in its usage.
func (s PromptSize) Counted() int { return s.Total() - s.Hidden }

// maxMediaShare is the max part of images and files in a prompt whose count calibrates ours:
// providers price them differently, and an estimate that is off by half then stays within the
// error of a calibration.
const maxMediaShare = 0.05

// Comparable reports whether a provider's count of the prompt can calibrate ours.
func (s PromptSize) Comparable() bool {
	return !s.Rough && float64(s.Media) <= maxMediaShare*float64(s.Total())
}

// AsText returns the size of the prompt when an adapter sends its tool turns as text and
// leaves the tools out (llm.Info.NoToolChoice). The text has about the tokens of the turns;
// it is not Comparable.
func (s PromptSize) AsText() PromptSize {
	s.Of[SectionTools], s.Rough = 0, true
	return s
}

// Sections returns the sections of the window as the prompt of the decision fills
// them, in the model's tokens; reserve and free come last.
func (s PromptSize) Sections(d Decision) []core.ContextPart {
	out := slices.Clone(d.Sections)
	at := 0
	for section, n := range s.Of {
		if out[at].Name == Section(section).String() {
			out[at].Tokens = d.Shown(n)
			at++
		}
	}
	out[at+1].Tokens = max(d.Budget.Usable-s.Used(d), 0)
	return out
}

// Used returns the size of the prompt in the model's tokens: the sum of its sections.
func (s PromptSize) Used(d Decision) (used int) {
	for _, n := range s.Of {
		used += d.Shown(n)
	}
	return used
}

// Shown converts cl100k_base tokens to the model's, rounded to the nearest.
func (d Decision) Shown(raw int) int { return int(math.Round(d.Factor * float64(raw))) }

// Shown returns the size of each message in the model's tokens; those of the tail and those
// of the run add up to their sections.
func (p Prompt) Shown(d Decision) []int {
	out := make([]int, len(p.Messages))
	var before [sectionCount]int
	for i, m := range p.Messages {
		n := &before[m.Section]
		out[i] = d.Shown(*n+m.Tokens) - d.Shown(*n)
		if m.Section == SectionTail || m.Section == SectionRun {
			*n += m.Tokens
		}
	}
	return out
}

// addBlock appends a system block to the prompt and counts it for a section, with the
// line breaks that adapters put before it. All blocks are one message for most providers.
func (p *assembly) addBlock(section Section, text string) {
	if text == "" {
		return
	}
	size := p.count.Text(text)
	if n := len(p.System); n == 0 {
		p.Sent.Of[SectionSystem] += tokens.MessageOverhead
	} else {
		size += p.count.Text(p.System[n-1]+"\n\n") - p.count.Text(p.System[n-1])
	}
	p.Sent.Of[section] += size
	p.System, p.Blocks = append(p.System, text), append(p.Blocks, BlockSize{section, size})
}

// largeText is the max size in bytes of a message with files that is counted again for each
// prompt. Larger ones keep the count of their arrival, which is at most a few tokens higher
// (attach.Tokens).
const largeText = 64 << 10

// sentTokens returns the tokens of a message as it is sent. A message that is sent as stored
// keeps its stored count; a shortened form is counted.
func (p *assembly) sentTokens(s Slot, m core.Message, out llm.Message) int {
	if s.Place == core.PlaceVerbatim && !s.Orphan {
		varies := func(p core.Part) bool { return p.Attached() || p.Signature != "" } // its tokens do by model
		stored := !slices.ContainsFunc(m.Parts, varies) && (p.parts.ReadsResults || out.Content == m.Content)
		if stored || len(out.Content) > largeText {
			n := s.asText()
			switch hasCalls := len(s.Calls) > 0; {
			case s.Bare && hasCalls:
				n += s.Thoughts
			case !s.Bare && !hasCalls:
				n -= s.Thoughts
			}
			return n + mediaTokens(out.Media, tokens.Pages)
		}
	}
	out.Parts = p.ownParts(out.Parts)
	return tokens.Prompted(p.count.Text, out)
}

// ownParts returns the parts that go back to this provider: not the thoughts that another one signed.
func (p *assembly) ownParts(parts []core.Part) []core.Part {
	var out []core.Part
	for _, part := range parts {
		if part.Origin == "" || strings.HasPrefix(part.Origin, p.files.model.Provider+"/") {
			out = append(out, part)
		}
	}
	return out
}

// mediaTokens adds up what the images and files cost that go with a message as they are.
func mediaTokens(sent []llm.Media, cost func(core.Part) int) int {
	n := 0
	for _, m := range sent {
		n += cost(m.Part)
	}
	return n
}
