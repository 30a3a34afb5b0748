package eval

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
)

// Recall is a conversation between two people with questions about it, and with the
// messages that answer them: the shape of LoCoMo and its like.
type Recall struct {
	ID      string
	Data    []byte // its messages, as JSON lines
	Facts   []Fact // its questions
	Skipped int    // questions without a message that answers them
}

// recallDocument is a Recall as it is written.
type recallDocument struct {
	ID       string   `json:"id"`
	Speakers []string `json:"speakers"`
	Messages []struct {
		ID      string `json:"id"`
		Speaker string `json:"speaker"`
		At      any    `json:"at"` // in a form that parseTime reads; anything else = not known
		Text    string `json:"text"`
	} `json:"messages"`
	Questions []struct {
		Question string   `json:"question"`
		Answer   any      `json:"answer"`
		Evidence []string `json:"evidence"` // ids of messages
	} `json:"questions"`
}

// importLine is a message as an import takes it.
type importLine struct {
	Role      core.Role `json:"role"`
	Content   string    `json:"content"`
	Author    string    `json:"author,omitempty"`
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// parseTime reads a time in the form of RFC 3339, or as LoCoMo writes it; zero = neither.
func parseTime(value any) time.Time {
	text, _ := value.(string)
	for _, layout := range []string{time.RFC3339, "3:04 pm on 2 January, 2006"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at
		}
	}
	return time.Time{}
}

// ReadRecalls reads a list of conversations with questions, or one alone; none of a
// document that is something else. The first speaker is the user, who else speaks the
// assistant. ErrInvalid says what is wrong with a conversation.
func ReadRecalls(data []byte) ([]Recall, error) {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\uFEFF")))
	if bytes.HasPrefix(data, []byte("{")) {
		data = append(append([]byte("["), data...), ']')
	}
	if !hasQuestions(data) {
		return nil, nil
	}
	var list []recallDocument
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, core.Errorf(core.ErrInvalid, "conversations with questions: %v", err)
	}
	out := make([]Recall, len(list))
	for i, r := range list {
		var err error
		if out[i], err = r.readDocument(); err != nil {
			return nil, core.Errorf(core.ErrInvalid, "conversation %d (%s): %v", i+1, core.Clip(r.ID, 40), err)
		}
	}
	return out, nil
}

// hasQuestions reports whether the first element of the list has messages and questions.
func hasQuestions(data []byte) bool {
	d := json.NewDecoder(bytes.NewReader(data))
	if start, err := d.Token(); err != nil || start != json.Delim('[') {
		return false
	}
	var first struct {
		Messages, Questions []json.RawMessage
	}
	return d.More() && d.Decode(&first) == nil && first.Messages != nil && first.Questions != nil
}

// readDocument returns the conversation as it is replayed.
func (r recallDocument) readDocument() (Recall, error) {
	out := Recall{ID: r.ID}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	said, texts := map[string]string{}, []string{}
	for i, m := range r.Messages {
		if said[m.ID] != "" {
			return out, fmt.Errorf("two messages have the id %q", core.Clip(m.ID, 40))
		}
		if strings.TrimSpace(m.Text) == "" {
			continue
		}
		said[m.ID] = m.Text
		texts = append(texts, m.Text)
		role := core.RoleAssistant
		if len(r.Speakers) > 0 && m.Speaker == r.Speakers[0] || len(r.Speakers) == 0 && m.Speaker == r.Messages[0].Speaker {
			role = core.RoleUser
		}
		line := importLine{Role: role, Content: m.Text, Author: m.Speaker, CreatedAt: parseTime(m.At)}
		if err := encoder.Encode(line); err != nil {
			return out, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	out.Data = lines.Bytes()
	words := newFrequency(texts)
	for i, q := range r.Questions {
		f := Fact{Kind: factOther, Ask: strings.TrimSpace(q.Question)}
		if q.Answer != nil { // a text or a number
			f.Text = fmt.Sprint(q.Answer)
		}
		for _, id := range q.Evidence {
			if text := said[id]; text != "" {
				f.Evidence = append(f.Evidence, words.newEvidence(text, f.Text))
			}
		}
		switch {
		case f.Ask == "" || len(f.Ask) > maxFactText:
			return out, fmt.Errorf("question %d is empty or has more than %d bytes", i+1, maxFactText)
		case len(f.Evidence) == 0:
			out.Skipped++
		default:
			out.Facts = append(out.Facts, f)
		}
	}
	return out, nil
}
