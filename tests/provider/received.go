package provider

import (
	"encoding/json"
	"strings"
)

// Received is a request as it came over the wire, taken apart.
type Received struct {
	Body       []byte
	System     []string // the system's text, block by block where the dialect has blocks
	Messages   []Message
	Tools      []Tool
	RawTools   json.RawMessage
	Reasoning  []string // that came back, encrypted (responses)
	ToolChoice string   // "none", "auto" …; empty = not said
	MaxOutput  int
	Format     json.RawMessage // of the answer, as OpenAI's clients ask for it; empty = a text

	// Pieces are what a cache compares, in its order: tools, then system and messages,
	// without what only marks them.
	Pieces []Piece

	Tokens     int  // of the prompt, as the provider counts
	CacheRead  int  // of these, what its cache held
	CacheWrite int  // and what it took
	Answered   bool // by a text; otherwise by a tool call
	calls      []Call

	// Of a strict provider.
	Thoughts        Thoughts         // what became of those in it
	Transformations []Transformation // which ones failed a check
	Compaction      bool             // it asks for a compaction
	Offered         []Tool           // the tools that the model may call, those that messages added included
}

// Message is a message of a request.
type Message struct {
	Role     string // user, assistant or tool
	Text     string
	Calls    []Call
	RawCalls json.RawMessage
	Images   []string // their addresses
	Files    []File
	Raw      json.RawMessage
}

// File is a file of a message.
type File struct{ Name, Data string }

// Piece is a part of a prompt as a cache sees it.
type Piece struct {
	Text string
	Mark bool // it ends with a breakpoint (Anthropic)
}

// Call is a tool call of a message.
type Call struct{ ID, Name, Arguments string }

// Tool is a tool definition.
type Tool struct {
	Name, Description string
	Parameters        json.RawMessage
}

// asked returns what the request asks for.
func (r Received) asked() Asked {
	a := Asked{Summary: strings.Contains(strings.Join(r.System, ""), "You summarize conversations")}
	if users := r.users(); len(users) > 0 {
		a.Question = users[len(users)-1]
	}
	if r.Compaction {
		a = Asked{Question: r.transcript(), Summary: true}
	}
	return a
}

// callsTool reports whether the question asks for a tool that was not called yet.
func (r Received) callsTool(a Asked) bool {
	last := ""
	if n := len(r.Messages); n > 0 {
		last = r.Messages[n-1].Role
	}
	return strings.Contains(a.Question, "tool") && last != "tool"
}

// users returns the texts of the user messages.
func (r Received) users() []string {
	var out []string
	for _, m := range r.Messages {
		if m.Role == "user" {
			out = append(out, m.Text)
		}
	}
	return out
}
