package openai

import (
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/llm"
)

// turn is a message of the user and what was answered. Both sides see a conversation as turns:
// the client knows nothing of the tools that the server has called between two texts.
type turn struct {
	user     string // with one space between words
	answer   string // the texts of all its messages, likewise
	messages []message
	partial  bool // of a stored turn: its answer was canceled
}

// results returns the results of tools that end the turn.
func (t turn) results() []message {
	n := len(t.messages)
	for n > 0 && t.messages[n-1].Role == "tool" {
		n--
	}
	return t.messages[n:]
}

// conversation is what the client sent, without the instructions.
type conversation struct {
	history []turn    // before the new message
	next    message   // the user's new message; without a role = the client sends results of its tools
	results []message // of the client's tools, at the end of the history

	continued bool // the user has said nothing new: next has the words of this server
}

// What a model is told that is to go on without a new message of the user.
const (
	goOnAnswering   = "Continue your last message exactly where it ends, without repeating it."
	goOnWithResults = "Continue with these results."
)

func readConversation(messages []message) (conversation, error) {
	var c conversation
	var faults core.Faults
	for i, m := range messages {
		field := fmt.Sprintf("messages[%d]", i)
		m.Content.check(&faults, field+".content")
		if m.isEmpty() && (m.Role == "assistant" || i < len(messages)-1) {
			continue // such as an answer that was stopped before its first word
		}
		switch m.Role {
		case "system", "developer":
		case "user":
			c.history = append(c.history, turn{user: normalize(m.Content.text), messages: []message{m}})
		case "assistant", "tool":
			if m.Role == "assistant" { // a stream had them as text when it could not know yet
				m.Content.text, _ = llm.CutThoughts(m.Content.text)
			}
			if len(c.history) == 0 { // a greeting
				c.history = append(c.history, turn{})
			}
			last := &c.history[len(c.history)-1]
			last.messages = append(last.messages, m)
			if m.Role == "tool" && m.ToolCallID == "" {
				faults.Add(field+".tool_call_id", "is missing")
			}
		default:
			faults.Add(field+".role", "must be system, developer, user, assistant or tool")
		}
	}
	if err := faults.Err(); err != nil {
		return c, err
	}
	for i, t := range c.history {
		var texts []string
		for _, m := range t.messages {
			if m.Role == "assistant" {
				texts = append(texts, m.Content.text)
			}
		}
		c.history[i].answer = normalize(texts...)
	}
	return c.splitNext()
}

// splitNext takes what is new from the end of the history.
func (c conversation) splitNext() (conversation, error) {
	if len(c.history) == 0 {
		return c, errNoQuestion()
	}
	last := &c.history[len(c.history)-1]
	newest := last.messages[len(last.messages)-1]
	switch newest.Role {
	case "user":
		c.next, c.history = newest, c.history[:len(c.history)-1]
		if len(c.history) > 0 {
			c.results = c.history[len(c.history)-1].results()
		}
		return c, nil
	case "tool":
		c.results = last.results()
		return c, nil
	default:
		c.continueWith(goOnAnswering)
		return c, nil
	}
}

// errNoQuestion returns the error for a request without anything to answer.
func errNoQuestion() error {
	return core.OneFault("messages", "must end with a message of the user, or with results of tools")
}

// isEmpty reports whether a message of the user or of the assistant says nothing.
func (m message) isEmpty() bool {
	return (m.Role == "user" || m.Role == "assistant") && strings.TrimSpace(m.Content.text) == "" && len(m.Content.files)+len(m.ToolCalls) == 0
}

// continueWith has the model go on where the history ends.
func (c *conversation) continueWith(words string) {
	c.next, c.results, c.continued = message{Role: "user", Content: content{text: words}}, nil, true
}

// continueCalls has the model go on with the results at the end, as those of another server, and
// reports whether it can: the history has the calls.
func (c *conversation) continueCalls() bool {
	made := map[string]bool{}
	for _, m := range c.history[len(c.history)-1].messages {
		for _, call := range m.ToolCalls {
			made[call.ID] = true
		}
	}
	for _, m := range c.results {
		if !made[m.ToolCallID] {
			return false
		}
	}
	c.continueWith(goOnWithResults)
	return true
}

// normalize returns the texts as one, with one space between words: clients trim texts, and join the
// texts of one turn in their own ways.
func normalize(texts ...string) string {
	var words []string
	for _, text := range texts {
		words = append(words, strings.Fields(text)...)
	}
	return strings.Join(words, " ")
}

// logMessage is what a history is compared with of a message of the log.
type logMessage struct {
	id, parent core.MessageID
	role       core.Role
	status     core.MessageStatus
	content    string
	seq        int64
	run        core.RunID // of a result of a tool, as the call
	call       string
	parts      []core.Part // of the user
	onPath     bool
}

func newLogMessage(m core.Message) logMessage {
	kept := logMessage{id: m.ID, parent: m.ParentID, role: m.Role, status: m.Status, content: m.Content, seq: m.Seq, onPath: m.OnPath}
	switch m.Role {
	case core.RoleUser:
		kept.parts = m.Parts
	case core.RoleTool:
		kept.run, kept.call = m.RunID, m.ToolCallID
	}
	return kept
}

// logTree is the log of a session with all its branches. It has each message once.
type logTree struct {
	messages  map[core.MessageID]*logMessage
	children  map[core.MessageID][]*logMessage // in the order in which they were written
	ends      map[core.MessageID]*logMessage   // the last messages of the newest answers that follow messages
	path      []*logMessage                    // the current one
	truncated bool                             // older messages are not in it
}

// newLogTree returns the tree of a session's messages, in the order of their seq.
func newLogTree(messages []logMessage) logTree {
	t := logTree{messages: map[core.MessageID]*logMessage{}, children: map[core.MessageID][]*logMessage{}, ends: map[core.MessageID]*logMessage{}}
	for i := range messages {
		m := &messages[i]
		t.messages[m.id] = m
		t.children[m.parent] = append(t.children[m.parent], m)
		if m.onPath {
			t.path = append(t.path, m)
		}
	}
	for i := range slices.Backward(messages) { // what follows a message comes before it
		m := &messages[i]
		if _, newer := t.ends[m.parent]; newer || m.role == core.RoleUser {
			continue
		}
		end, continued := t.ends[m.id]
		if !continued {
			end = m
		}
		t.ends[m.parent] = end
	}
	return t
}

// leaf returns the end of the current path; empty = there are no messages.
func (t logTree) leaf() core.MessageID {
	if len(t.path) == 0 {
		return ""
	}
	return t.path[len(t.path)-1].id
}

// findTurn returns the last message of the newest turn after parent that is the client's.
func (t logTree) findTurn(parent core.MessageID, want turn) (core.MessageID, bool) {
	for _, m := range slices.Backward(t.children[parent]) {
		var last core.MessageID
		var found bool
		switch {
		case m.role != core.RoleUser && want.user == "": // a greeting
			last, found = t.matchAnswer(m, want.answer)
		case m.role == core.RoleUser && normalize(m.content) == want.user:
			last, found = t.findAnswer(m.id, want.answer)
		}
		if found {
			return last, true
		}
	}
	return "", false
}

// findAnswer returns the last message of the newest answer after a message that has the text. The
// whole search looks at each message once, and copies no text of the client.
func (t logTree) findAnswer(at core.MessageID, text string) (core.MessageID, bool) {
	ended := true
	for _, m := range slices.Backward(t.children[at]) {
		if m.role == core.RoleUser {
			continue
		}
		ended = false
		if last, found := t.matchAnswer(m, text); found {
			return last, true
		}
	}
	return at, ended && text == ""
}

// matchAnswer returns the last message of an answer that has the text and begins with m.
func (t logTree) matchAnswer(m *logMessage, text string) (core.MessageID, bool) {
	if m.role != core.RoleAssistant {
		return t.findAnswer(m.id, text)
	}
	stored := normalize(m.content)
	rest, ok := strings.CutPrefix(text, stored)
	if ok && stored != "" && rest != "" {
		rest, ok = strings.CutPrefix(rest, " ") // there is one between words
	}
	if ok {
		if last, found := t.findAnswer(m.id, rest); found {
			return last, true
		}
	}
	if !strings.HasPrefix(stored, text) {
		return "", false
	}
	end, continued := t.ends[m.id]
	if !continued {
		end = m
	}
	return end.id, end.status == core.MessagePartial
}

// placement says where a new message belongs in a session.
type placement struct {
	kind    placementKind
	after   core.MessageID // the last message that both sides have; empty = none
	missing []turn         // turns of the client that the log does not have, to be stored after it
	repeats []logMessage   // stored messages with the text of the new one, the newest last: with the same files, too, it is one of them
}

// placementKind is a kind of placement; clients see it in a header.
type placementKind string

// The kinds of placements.
const (
	placeAppend placementKind = "append" // at the end of the conversation
	placeBranch placementKind = "branch" // beside what the log has
	placeSide   placementKind = "side"   // the request has nothing to do with the conversation
)

// placeConversation compares the client's conversation with the log.
func (t logTree) placeConversation(c conversation) placement {
	if t.truncated {
		return t.placeAtEnd(c)
	}
	at, matched := core.MessageID(""), 0
	for _, want := range c.history {
		last, ok := t.findTurn(at, want)
		if !ok {
			break
		}
		at, matched = last, matched+1
	}
	if matched == 0 && len(t.path) > 0 {
		if p := t.placeAtEnd(c); p.kind == placeAppend || !t.resembles(c) {
			return p
		}
	}
	p := placement{kind: placeBranch, after: at, missing: c.history[matched:]}
	if len(p.missing) == 0 {
		p.after, p.missing = t.replaceResults(at, c.results)
	}
	if p.after == t.leaf() {
		p.kind = placeAppend
	}
	if len(p.missing) > 0 {
		return p
	}
	next := normalize(c.next.Content.text)
	for _, m := range t.children[at] {
		if m.role == core.RoleUser && normalize(m.content) == next {
			p.repeats, p.kind = append(p.repeats, *m), placeBranch
		}
	}
	return p
}

// placeAtEnd places a conversation whose beginning the log does not have: at the end if the
// current path ends with it, since clients leave out the beginning of long conversations.
func (t logTree) placeAtEnd(c conversation) placement {
	isSame := func(stored, sent turn) bool { // a client that canceled an answer may have got less of it
		return stored.user == sent.user && (stored.answer == sent.answer || stored.partial && strings.HasPrefix(stored.answer, sent.answer))
	}
	path := pathTurns(t.path)
	n := len(path) - len(c.history)
	if len(c.history) == 0 || n < 0 || !slices.EqualFunc(path[n:], c.history, isSame) {
		return placement{kind: placeSide}
	}
	return placement{kind: placeAppend, after: t.leaf()}
}

func pathTurns(path []*logMessage) []turn {
	var turns []turn
	for len(path) > 0 {
		end := 1 + slices.IndexFunc(path[1:], func(m *logMessage) bool { return m.role == core.RoleUser })
		if end == 0 {
			end = len(path)
		}
		// Only the first one may be the user's.
		messages := path[:end]
		var t turn
		var texts []string
		for _, m := range messages {
			switch m.role {
			case core.RoleUser:
				t.user = normalize(m.content)
			case core.RoleAssistant:
				texts, t.partial = append(texts, m.content), m.status == core.MessagePartial
			}
		}
		t.answer = normalize(texts...)
		turns = append(turns, t)
		path = path[end:]
	}
	return turns
}
