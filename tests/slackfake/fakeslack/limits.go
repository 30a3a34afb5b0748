package fakeslack

import (
	"encoding/json"
	"fmt"
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
