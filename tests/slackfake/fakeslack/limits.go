package fakeslack

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"
	"unicode/utf8"
)

// Limits of Slack on a message, in characters where nothing else is said.
const (
	maxText      = 40_000 // what is longer is cut off, with a warning
	maxMarkdown  = 12_000
	maxBlocks    = 50     // blocks
	maxBlockText = 13_200 // all texts of the blocks
)

// blockTypes are the types of blocks that messages of Bobbin and of the tests have.
func blockTypes() map[string]bool {
	types := map[string]bool{}
	for _, name := range []string{"actions", "context", "context_actions", "markdown", "rich_text", "section"} {
		types[name] = true
	}
	return types
}

func countChars(s string) int { return utf8.RuneCountInString(s) }

// truncateText cuts off what Slack cuts off, and returns the warning for it.
func truncateText(text string) (string, string) {
	if countChars(text) <= maxText {
		return text, ""
	}
	return string([]rune(text)[:maxText]), warningTruncated
}

// blockCheck collects what is wrong with blocks.
type blockCheck struct {
	messages []string
	chars    int
}

// CheckBlocks returns Slack's error for blocks that it refuses.
func CheckBlocks(raw json.RawMessage) error {
	var blocks []map[string]any
	if json.Unmarshal(raw, &blocks) != nil {
		return failure{code: "invalid_blocks_format"}
	}
	check, known := &blockCheck{}, blockTypes()
	if len(blocks) > maxBlocks {
		check.addRefusal("no more than %d items allowed [json-pointer:/blocks]", maxBlocks)
	}
	for i, b := range blocks {
		at := fmt.Sprintf("/blocks/%d", i)
		kind, _ := b["type"].(string)
		if !known[kind] {
			check.addRefusal("unsupported type: %s [json-pointer:%s/type]", kind, at)
		}
		check.checkBlock(kind, at, b)
	}
	switch {
	case len(check.messages) > 0:
		return failure{code: "invalid_blocks", messages: check.messages}
	case check.chars > maxBlockText:
		return failure{code: "msg_blocks_too_long"}
	}
	return nil
}

func (c *blockCheck) addRefusal(format string, values ...any) {
	c.messages = append(c.messages, "[ERROR] "+fmt.Sprintf(format, values...))
}

// checkText counts a text, a string or a text object, and refuses one that is too long.
func (c *blockCheck) checkText(at string, value any, limit int) {
	if object, ok := value.(map[string]any); ok {
		at, value = at+"/text", object["text"]
	}
	text, _ := value.(string)
	n := countChars(text)
	c.chars += n
	if n > limit {
		c.addRefusal("must be less than %d characters [json-pointer:%s]", limit+1, at)
	}
}

// checkList refuses a list that is too long, and returns its objects.
func (c *blockCheck) checkList(at string, value any, limit int) []any {
	items, _ := value.([]any)
	if len(items) > limit {
		c.addRefusal("no more than %d items allowed [json-pointer:%s]", limit, at)
	}
	return items
}

func (c *blockCheck) checkBlock(kind, at string, b map[string]any) {
	if id, _ := b["block_id"].(string); countChars(id) > 255 {
		c.addRefusal("must be less than 256 characters [json-pointer:%s/block_id]", at)
	}
	switch kind {
	case "section":
		c.checkText(at+"/text", b["text"], 3000)
	case "markdown":
		c.checkText(at+"/text", b["text"], maxMarkdown)
	case "context":
		for i, element := range c.checkList(at+"/elements", b["elements"], 10) {
			c.checkText(fmt.Sprintf("%s/elements/%d", at, i), element, 3000)
		}
	case "actions", "context_actions":
		limit := map[string]int{"actions": 25, "context_actions": 5}[kind]
		for i, element := range c.checkList(at+"/elements", b["elements"], limit) {
			c.checkElement(fmt.Sprintf("%s/elements/%d", at, i), element)
		}
	}
}

// checkElement checks a button.
func (c *blockCheck) checkElement(at string, value any) {
	element, _ := value.(map[string]any)
	if element["type"] != "button" {
		return
	}
	c.checkText(at+"/text", element["text"], 75)
	for name, limit := range map[string]int{"value": 2000, "url": 3000, "action_id": 255} {
		if text, _ := element[name].(string); countChars(text) > limit {
			c.addRefusal("must be less than %d characters [json-pointer:%s/%s]", limit+1, at, name)
		}
	}
}

// checkMetadata returns the metadata of a message if they have the form that Slack wants.
func checkMetadata(raw json.RawMessage) (json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	var m struct {
		EventType    string         `json:"event_type"`
		EventPayload map[string]any `json:"event_payload"`
	}
	switch err := json.Unmarshal(raw, &m); {
	case err != nil:
		return nil, failure{code: "invalid_metadata_format"}
	case m.EventType == "" || m.EventPayload == nil:
		return nil, failure{code: "invalid_metadata_schema"}
	}
	return raw, nil
}

// Fault disturbs the answers of the Web API. One without any disturbance lets its calls
// pass those behind it.
type Fault struct {
	Method     string        // "": every method
	Times      int           // how many calls it disturbs; 0: all, until ClearFaults
	RetryAfter time.Duration // the answer is 429, and the method does nothing
	Status     int           // the answer has this status, and the method does nothing
	Error      string        // the answer is this error, and the method does nothing
	LoseAnswer bool          // the method works, and the connection breaks before the answer

	used int
}

// EventFaults disturb the deliveries of events.
type EventFaults struct {
	Duplicate bool // every event comes twice
	Held      bool // events are held back until DisturbEvents is called again
	Dead      bool // the app cannot be reached
}

// Inject adds a fault. The first one that matches a call disturbs it.
func (s *Server) Inject(f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, &f)
}

// ClearFaults ends all faults of the Web API.
func (s *Server) ClearFaults() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = nil
}

// DisturbEvents replaces the faults of events. Events that were held back are delivered.
func (s *Server) DisturbEvents(f EventFaults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.eventFaults = f
	s.releaseHeld()
}

// takeFault returns the fault for a call, zero for none. It takes mu.
func (s *Server) takeFault(method string) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Method != "" && f.Method != method || f.Times > 0 && f.used == f.Times {
			continue
		}
		f.used++
		return *f
	}
	return Fault{}
}

func (f Fault) statusCode() int {
	if f.RetryAfter > 0 {
		return http.StatusTooManyRequests
	}
	return f.Status
}

// writeRefusal writes the answer of a fault with a status.
func (f Fault) writeRefusal(w http.ResponseWriter) {
	code := "internal_error"
	if f.RetryAfter > 0 {
		code = "ratelimited"
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	writeJSON(w, f.statusCode(), reply{"ok": false, "error": code})
}
