package openai

import (
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// stored is a log in the making.
type stored []core.Message

// add adds a message after another one, and makes it the end of the current path.
func (s *stored) add(id, parent core.MessageID, role core.Role, text string) {
	*s = append(*s, core.Message{ID: id, ParentID: parent, Role: role, Content: text, Seq: int64(len(*s) + 1)})
	onPath := map[core.MessageID]bool{}
	parents := map[core.MessageID]core.MessageID{}
	for _, m := range *s {
		parents[m.ID] = m.ParentID
	}
	for at := id; at != ""; at = parents[at] {
		onPath[at] = true
	}
	for i := range *s {
		(*s)[i].OnPath = onPath[(*s)[i].ID]
	}
}

// talk returns messages of alternating roles, the user's first.
func talk(texts ...string) []message {
	var list []message
	for i, text := range texts {
		list = append(list, message{Role: []string{"user", "assistant"}[i%2], Content: content{text: text}})
	}
	return list
}

func longLog() stored {
	var s stored
	s.add("u1", "", core.RoleUser, "What is a bobbin?")
	s.add("a1", "u1", core.RoleAssistant, "A spool\nfor thread.")
	s.add("u2", "a1", core.RoleUser, "And what is a loom?")
	s.add("c2", "u2", core.RoleAssistant, "Let me look.") // with a call of a tool of the server
	s.add("t2", "c2", core.RoleTool, "loom: a machine")
	s.add("a2", "t2", core.RoleAssistant, "A machine to weave.")
	return s
}

// paste is a long message, titlePrompt the beginning of Open WebUI's request for a title.
var (
	paste       = numberedWords(150)
	titlePrompt = "### Task: Generate a concise, 3-5 word title with an emoji summarizing the chat history. ### Output: JSON format: { \"title\": \"your concise title here\" } ### Chat History: <chat_history> USER: "
)

// numberedWords returns a text of different words.
func numberedWords(n int) string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("word%d", i))
	}
	return strings.Join(words, " ")
}

func pasteLog() stored {
	var s stored
	s.add("u1", "", core.RoleUser, paste)
	s.add("a1", "u1", core.RoleAssistant, "A poem about looms, and threads.")
	return s
}

func editedPasteLog() stored {
	s := pasteLog()
	s.add("u1b", "", core.RoleUser, "An edit: "+paste)
	return s
}

// A client's history is the same as the log up to where both differ; what is new there becomes a
// branch, and what has nothing to do with the log never enters it.
func TestPlace(t *testing.T) {
	t.Parallel()
	branched := longLog()
	branched.add("u2b", "a1", core.RoleUser, "Who made the first one?")
	branched.add("a2b", "u2b", core.RoleAssistant, "Nobody knows.")
	canceled := longLog()
	canceled[len(canceled)-1].Status = core.MessagePartial
	for _, tt := range []struct {
		name string
		log  stored
		sent []message
		want placement
	}{
		{"first message", nil, talk("hello"), placement{kind: placeAppend}},
		{"given history", nil, talk("hello", "hi", "and?"), placement{kind: placeAppend, missing: make([]turn, 1)}},
		{"next message", longLog(), talk("What is a bobbin?", "A spool for thread.", "And what is a loom?", "Let me look.\n\nA machine to weave. ", "Thanks"), placement{kind: placeAppend, after: "a2"}},
		{"edited message", longLog(), talk("What is a bobbin?", "A spool for thread.", "And what is a shuttle?"), placement{kind: placeBranch, after: "a1"}},
		{"regenerated answer", longLog(), talk("What is a bobbin?", "A spool for thread.", "And what is a loom?"), placement{kind: placeBranch, after: "a1", repeats: logOf(longLog()[2:3])}},
		{"regenerated first answer", longLog(), talk("What is a bobbin?"), placement{kind: placeBranch, repeats: logOf(longLog()[:1])}},
		{"edited first message", longLog(), talk("What is a steel bobbin?"), placement{kind: placeBranch}},
		{"edited answer", longLog(), talk("What is a bobbin?", "A reel.", "And what is a loom?"), placement{kind: placeBranch, missing: make([]turn, 1)}},
		{"another branch than the current one", branched, talk("What is a bobbin?", "A spool for thread.", "And what is a loom?", "Let me look. A machine to weave.", "Thanks"), placement{kind: placeBranch, after: "a2"}},
		{"the current branch", branched, talk("What is a bobbin?", "A spool for thread.", "Who made the first one?", "Nobody knows.", "Thanks"), placement{kind: placeAppend, after: "a2b"}},
		{"without the beginning", longLog(), talk("And what is a loom?", "Let me look. A machine to weave.", "Thanks"), placement{kind: placeAppend, after: "a2"}},
		{"less of a canceled answer", canceled, talk("What is a bobbin?", "A spool for thread.", "And what is a loom?", "Let me look.\n\nA mach", "Thanks"), placement{kind: placeAppend, after: "a2"}},
		{"less of a whole answer", longLog(), talk("What is a bobbin?", "A spool for thread.", "And what is a loom?", "Let me look.\n\nA mach", "Thanks"), placement{kind: placeBranch, after: "a1", missing: make([]turn, 1)}},
		{"a title", longLog(), talk("Write a title of at most five words for this conversation: What is a bobbin? A spool for thread. And what is a loom? A machine to weave. Answer with the title alone."), placement{kind: placeSide}},
		{"a title of a long first message", pasteLog(), talk(titlePrompt + paste + " ASSISTANT: A poem. </chat_history>"), placement{kind: placeSide}},
		{"a title of a cut first message", pasteLog(), talk(titlePrompt + paste[:len(paste)-20] + "... ASSISTANT: A poem about looms, and threads. </chat_history>"), placement{kind: placeSide}},
		{"a title of an edited first message", editedPasteLog(), talk(titlePrompt + "An edit: " + paste + " ASSISTANT: </chat_history>"), placement{kind: placeSide}},
		{"more behind a long first message", pasteLog(), talk(paste + strings.Repeat(" and more", 30)), placement{kind: placeBranch}},
		{"more before a long first message", pasteLog(), talk(strings.Repeat("and more ", 30) + paste), placement{kind: placeBranch}},
		{"more around a long first message, with its answer", pasteLog(), talk(titlePrompt+paste+" and more", "Aha.", "Thanks"), placement{kind: placeBranch, missing: make([]turn, 1)}},
		{"another conversation", longLog(), talk("Good morning", "Good morning!", "How are you?"), placement{kind: placeSide}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := must.Get(readConversation(tt.sent))(t)
			got := newLogTree(logOf(tt.log)).placeConversation(c)
			compare.Equal(t, "missing turns", len(tt.want.missing), len(got.missing))
			got.missing, tt.want.missing = nil, nil
			compare.Equal(t, "placement", tt.want, got, cmp.AllowUnexported(placement{}, logMessage{}))
		})
	}
}

// What chat pages ask before the first message of a chat is told apart from a message by the whole
// form of their prompts.
func TestTaskPrompt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sent []message
		want bool
	}{
		{"search queries of Open WebUI", talk("### Task:\nWrite queries.\n<chat_history>\nUSER: hello\n</chat_history>"), true},
		{"a document in Open WebUI", talk("### Task:\nAnswer the query.\n<context>a loom</context>\nhello"), false},
		{"a title of LibreChat", talk("Provide a concise, 5-word-or-less title for the conversation, in its language.\n\nConversation:\nUser: hello\nAI: "), true},
		{"a title of LibreChat with the language", talk("Analyze this conversation and provide:\n1. The detected language of the conversation\n2. A title\n\nUser: hello\nAI: "), true},
		{"a title without a conversation", talk("Provide a concise, 5-word-or-less title for the conversation, please."), false},
		{"a pasted conversation", talk("Analyze this conversation and provide:\n1. Its tone\n\nUser: hello\nAI: hi"), false},
		{"a title of LibreChat behind an answer", talk("hello", "hi", "Provide a concise, 5-word-or-less title for the conversation, now.\n\nUser: hello"), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := must.Get(readConversation(tt.sent))(t)
			compare.Equal(t, "c.isTaskPrompt()", tt.want, c.isTaskPrompt())
		})
	}
}

// Of a log that is too long to be read whole, only its end is compared.
func TestPlaceInTruncatedLog(t *testing.T) {
	t.Parallel()
	log := newLogTree(logOf(longLog()[2:]))
	log.truncated = true
	answer := "Let me look. A machine to weave."
	for _, tt := range []struct {
		name string
		sent []message
		want placement
	}{
		{"the end", talk("And what is a loom?", answer, "Thanks"), placement{kind: placeAppend, after: "a2"}},
		{"more than the log has", talk("What is a bobbin?", "A spool.", "And what is a loom?", answer, "Thanks"), placement{kind: placeSide}},
		{"another end", talk("And what is a loom?", "A machine.", "Thanks"), placement{kind: placeSide}},
		{"no history", talk("And what is a loom?"), placement{kind: placeSide}},
	} {
		c := must.Get(readConversation(tt.sent))(t)
		compare.Equal(t, fmt.Sprintf("%s: placement", tt.name), tt.want, log.placeConversation(c), cmp.AllowUnexported(placement{}, logMessage{}))
	}
}

// The largest history and log cost what they are long, not its square.
func TestLongestHistory(t *testing.T) {
	sent := talk("Count")
	log := stored{{ID: "u", Role: core.RoleUser, Content: "Count", OnPath: true}}
	for i := range maxMessages - 3 {
		text := fmt.Sprintf("The number that comes after this one is %d.", i)
		sent = append(sent, message{Role: "assistant", Content: content{text: text}})
		id := core.MessageID(fmt.Sprintf("a%d", i))
		log = append(log, core.Message{ID: id, ParentID: log[i].ID, Role: core.RoleAssistant, Content: text, OnPath: true})
	}
	for _, tt := range []struct {
		name string
		edit func()
		want placementKind
	}{
		{"the same", func() {}, placeAppend},
		{"another end", func() { sent[len(sent)-1].Content.text = "?" }, placeBranch},
		{"a canceled answer", func() { log[len(log)-1].Status = core.MessagePartial }, placeBranch},
		{"many branches", func() {
			for i := 1; i < len(log); i++ {
				log[i].ParentID = log[0].ID
			}
		}, placeBranch},
	} {
		tt.edit()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		c := must.Get(readConversation(append(slices.Clone(sent), talk("Thanks")...)))(t)
		got := newLogTree(logOf(log)).placeConversation(c)
		runtime.ReadMemStats(&after)
		compare.Equal(t, tt.name, tt.want, got.kind)
		if n := (after.TotalAlloc - before.TotalAlloc) >> 20; n > 200 {
			t.Errorf("%s: %d MiB were allocated", tt.name, n)
		} else {
			t.Logf("%s: %d MiB", tt.name, n)
		}
	}
}

// What other servers answer is answered: histories with messages that say nothing, and those in which
// the user has said nothing new.
func TestHistoriesOfClients(t *testing.T) {
	t.Parallel()
	system := message{Role: "system", Content: content{text: "Be brief."}}
	call := message{Role: "assistant", ToolCalls: []toolCall{{ID: "c1"}}}
	result := message{Role: "tool", ToolCallID: "c1", Content: content{text: "42"}}
	for _, tt := range []struct {
		name      string
		sent      []message
		history   []string
		next      string
		continued bool
	}{
		{"an answer stopped before its first word", talk("first", "ok", "second", "", "third"), []string{"first/ok", "second/"}, "third", false},
		{"a question without words", talk("first", "ok", " ", "well?", "third"), []string{"first/ok well?"}, "third", false},
		{"an empty answer at the end", talk("first", ""), nil, "first", false},
		{"continue an answer", talk("first", "It is"), []string{"first/It is"}, goOnAnswering, true},
		{"instructions alone", []message{system, system}, nil, "Be brief.", false},
		{"results of another server's calls", append(talk("first"), call, result), []string{"first/"}, goOnWithResults, true},
	} {
		body := completionRequest{Messages: tt.sent}
		body.askInstructions()
		c, err := readConversation(body.Messages)
		if err == nil && c.next.Role == "" {
			c.continueCalls()
		}
		var history []string
		for _, turn := range c.history {
			history = append(history, turn.user+"/"+turn.answer)
		}
		if err != nil || !slices.Equal(history, tt.history) || c.next.Content.text != tt.next || c.continued != tt.continued {
			t.Errorf("%s: got %q and %q, continued %v, %v", tt.name, history, c.next.Content.text, c.continued, err)
		}
		for _, turn := range c.history {
			for _, m := range turn.messages {
				if m.isEmpty() {
					t.Errorf("%s: an empty message is in the history", tt.name)
				}
			}
		}
	}
	c, err := readConversation(append(talk("first", "ok"), result))
	if err != nil || c.continueCalls() {
		t.Errorf("a result without its call: got %v, %v", c.next, err)
	}
}

// logOf returns what a history is compared with of the messages.
func logOf(messages []core.Message) (log []logMessage) {
	for _, m := range messages {
		log = append(log, newLogMessage(m))
	}
	return log
}

// A client whose run waits is told so immediately, as its protocol allows, and nothing else before
// the run starts.
func TestQueued(t *testing.T) {
	t.Parallel()
	run := core.Run{ID: "0192f0c4-0000-7000-8000-000000000001"}
	said := regexp.MustCompile(`event: \S+|"sequence_number":\d|: queued|"role":"assistant"|"status":"\w+"`)
	newShape := func() *responseShape { return newResponseShape(activeRun{}, nil) }
	for name, tt := range map[string]struct {
		encode         func([]byte, core.Event) ([]byte, error)
		queued, starts string
	}{
		"chunks": {newChunkEncoder(run, completionRequest{Model: "assistant"}, 1).encode, `: queued`, `"role":"assistant"`},
		"responses": {newResponseEncoder(newShape(), run, -1).encode,
			`event: response.created "sequence_number":0 "status":"queued" event: response.queued "sequence_number":1 "status":"queued"`, `event: response.in_progress "sequence_number":2 "status":"in_progress"`},
		"responses that come back": {newResponseEncoder(newShape(), run, 0).encode, `event: response.queued "sequence_number":1 "status":"queued"`, `event: response.in_progress "sequence_number":2 "status":"in_progress"`},
	} {
		queued := must.Get(tt.encode(nil, core.Event{Type: core.EventRunQueued, Data: core.MessageData{}}))(t)
		starts := must.Get(tt.encode(nil, core.Event{Type: core.EventRunStarted, Data: core.RunData{Run: run}}))(t)
		compare.Equal(t, name+": while it waits", tt.queued, strings.Join(said.FindAllString(string(queued), -1), " "))
		compare.Equal(t, name+": when it starts", tt.starts, strings.Join(said.FindAllString(string(starts), -1), " "))
	}
	slot := core.Event{Type: core.EventNodeStarted, Data: core.NodeData{Node: core.NodeModelSlot}}
	got := must.Get(newChunkEncoder(run, completionRequest{Model: "assistant"}, 1).encode(nil, slot))(t)
	compare.Equal(t, "while it waits for a slot of its model", queuedComment, string(got))
}
