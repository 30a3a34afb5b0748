package eval

import (
	"embed"
	"fmt"
	"strings"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
)

// Conversation is a recorded conversation as it is replayed.
type Conversation struct {
	System  string         // its own system prompt, the system messages at its beginning; empty = none
	Opening []core.Message // before the first question: nobody asked for them
	Turns   []Turn
	Tools   []string // the names of the tools that were called, in the order of their first call
	// StandIns counts what is said in the replay although the file has it not: the
	// result of a call without one, the last word of a turn that has none.
	StandIns int
}

// Turn is a user's message with everything up to the next one.
type Turn struct {
	Question core.Message
	Steps    []Step         // the model calls that answered it, the last without tool calls; none = nobody answered
	Rest     []core.Message // what came after the answer without a question: stored as it is
}

// Step is one answer of the model, with the results of its tool calls.
type Step struct {
	Answer  core.Message
	Results []core.Message // in the order of the calls
}

// What stands in for what a file does not have.
const (
	noResult = "[no result was recorded]"
	noAnswer = "[no answer was recorded]"
)

// Split returns the messages as turns. System messages behind the first other one
// are passed over, as prompts never hold them. The messages must be in an order
// that providers take: every result behind its call.
func Split(messages []core.Message) Conversation {
	s := splitter{ids: map[string]int{}, tools: map[string]bool{}}
	var system []string
	for i := 0; i < len(messages); {
		switch m := messages[i]; m.Role {
		case core.RoleSystem:
			if len(s.Turns) == 0 && len(s.Opening) == 0 {
				system = append(system, strings.TrimSpace(m.Content))
			}
			i++
		case core.RoleUser:
			s.closeTurn()
			s.Turns = append(s.Turns, Turn{Question: m})
			s.open = true
			i++
		default:
			end := i + 1
			for end < len(messages) && (messages[end].Role == core.RoleTool || messages[end].Role == core.RoleSystem) {
				end++
			}
			results := messages[i+1 : end]
			step := s.addStep(m, results)
			switch {
			case s.open && m.Role == core.RoleAssistant && (len(m.ToolCalls) > 0 || strings.TrimSpace(m.Content) != ""):
				turn := &s.Turns[len(s.Turns)-1]
				turn.Steps = append(turn.Steps, step)
				s.open = len(m.ToolCalls) > 0
			case len(s.Turns) == 0:
				s.Opening = append(append(s.Opening, step.Answer), step.Results...)
			default:
				turn := &s.Turns[len(s.Turns)-1]
				turn.Rest = append(append(turn.Rest, step.Answer), step.Results...)
				s.open = false
			}
			i = end
		}
	}
	s.closeTurn()
	s.System = strings.TrimSpace(strings.Join(system, "\n\n"))
	return s.Conversation
}

// splitter makes a Conversation.
type splitter struct {
	Conversation
	open  bool           // the last turn waits for an answer
	ids   map[string]int // of tool calls so far
	tools map[string]bool
}

// closeTurn ends the last turn: one whose loop was broken off is given a last word.
func (s *splitter) closeTurn() {
	if !s.open {
		return
	}
	s.open = false
	if turn := &s.Turns[len(s.Turns)-1]; len(turn.Steps) > 0 {
		turn.Steps = append(turn.Steps, Step{Answer: core.Message{Role: core.RoleAssistant, Content: noAnswer}})
		s.StandIns++
	}
}

// addStep puts the results into the order of the calls, and gives every call an id that
// no other of the conversation has, as the log does.
func (s *splitter) addStep(m core.Message, results []core.Message) Step {
	step := Step{Answer: m}
	step.Answer.ToolCalls = make([]core.ToolCall, 0, len(m.ToolCalls))
	taken := make([]bool, len(results))
	for _, c := range m.ToolCalls {
		old := c.ID
		c.ID, c.Name = s.uniqueID(old), tools.FitName(c.Name)
		if !s.tools[c.Name] {
			s.tools[c.Name] = true
			s.Tools = append(s.Tools, c.Name)
		}
		result := core.Message{Role: core.RoleTool, Content: noResult, ToolName: c.Name}
		at := 0
		for at < len(results) && (results[at].Role != core.RoleTool || results[at].ToolCallID != old || taken[at]) {
			at++
		}
		if at < len(results) {
			taken[at], result = true, results[at]
		} else {
			s.StandIns++
		}
		result.ToolCallID = c.ID
		step.Answer.ToolCalls = append(step.Answer.ToolCalls, c)
		step.Results = append(step.Results, result)
	}
	return step
}

// uniqueID returns the id, with a number behind it if there was one of that name.
func (s *splitter) uniqueID(id string) string {
	s.ids[id]++
	for n := s.ids[id]; n > 1; n++ {
		other := fmt.Sprintf("%s_%d", id, n)
		if s.ids[other] == 0 {
			s.ids[other]++
			return other
		}
	}
	return id
}

// Messages returns all messages of the replay, in order.
func (c Conversation) Messages() []core.Message {
	all := append([]core.Message(nil), c.Opening...)
	for _, t := range c.Turns {
		all = append(append(all, t.answers()...), t.Rest...)
	}
	return all
}

// answers returns the question and what answered it.
func (t Turn) answers() []core.Message {
	all := []core.Message{t.Question}
	for _, s := range t.Steps {
		all = append(append(all, s.Answer), s.Results...)
	}
	return all
}

// Iterations returns the most model calls of a turn.
func (c Conversation) Iterations() int {
	most := 0
	for _, t := range c.Turns {
		most = max(most, len(t.Steps))
	}
	return most
}

//go:embed data
var data embed.FS

// Sample is a conversation to try an evaluation with. Each contains facts to look for, and is
// long enough to show an effect in the window that it names.
type Sample struct {
	Name   string `json:"name"`
	About  string `json:"about"`
	Window int    `json:"window"` // in which it is worth looking at, in tokens
}

// List returns the samples.
func List() []Sample {
	return []Sample{
		{"chat", "a bicycle workshop moves house: a long talk about many things", 8_192},
		{"coding", "an agent repairs a Go service with the tools of an editor", 32_768},
		{"cjk", "a tea house in Hangzhou: Chinese, with Japanese and Korean between", 8_192},
		{"incident", "a night on call: few questions, and tools that answer with whole log files", 32_768},
	}
}

// SampleNames returns the names of the samples.
func SampleNames() (names []string) {
	for _, s := range List() {
		names = append(names, s.Name)
	}
	return names
}

// Get returns a sample with its messages, as JSON lines. ErrNotFound names those
// that there are.
func Get(name string) (Sample, []byte, error) {
	for _, s := range List() {
		if s.Name != name {
			continue
		}
		raw, err := data.ReadFile("data/" + name + ".jsonl")
		if err != nil {
			return s, nil, fmt.Errorf("sample %s: %w", name, err)
		}
		return s, raw, nil
	}
	return Sample{}, nil, core.Errorf(core.ErrNotFound, "there is no sample %q; there are %s", core.Clip(name, 40), strings.Join(SampleNames(), ", "))
}
