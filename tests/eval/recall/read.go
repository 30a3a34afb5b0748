package recall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"bobbin/app/core"
)

// Talk is a conversation between two people with questions about it, and with the
// messages that answer them: the shape of LoCoMo and its like.
type Talk struct {
	ID        string
	Data      []byte // its messages, as JSON lines
	Questions []Question
	Skipped   int // questions without a message that answers them
}

// Question is a question with the messages that answer it, any of which is enough.
type Question struct {
	Ask, Answer string
	Evidence    []Evidence
}

// talkDocument is a Talk as it is written.
type talkDocument struct {
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

// Read reads a list of conversations with questions. The first speaker is the user, who else
// speaks the assistant.
func Read(data []byte) ([]Talk, error) {
	var list []talkDocument
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("conversations with questions: %w", err)
	}
	out := make([]Talk, len(list))
	for i, r := range list {
		var err error
		if out[i], err = r.readDocument(); err != nil {
			return nil, fmt.Errorf("conversation %d (%s): %w", i+1, r.ID, err)
		}
	}
	return out, nil
}

// readDocument returns the conversation as it is replayed.
func (r talkDocument) readDocument() (Talk, error) {
	out := Talk{ID: r.ID}
	var lines bytes.Buffer
	encoder := json.NewEncoder(&lines)
	said, texts := map[string]string{}, []string{}
	for i, m := range r.Messages {
		if said[m.ID] != "" {
			return out, fmt.Errorf("two messages have the id %q", m.ID)
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
	for _, q := range r.Questions {
		question := Question{Ask: strings.TrimSpace(q.Question)}
		if q.Answer != nil { // a text or a number
			question.Answer = fmt.Sprint(q.Answer)
		}
		for _, id := range q.Evidence {
			if text := said[id]; text != "" {
				question.Evidence = append(question.Evidence, words.newEvidence(text, question.Answer))
			}
		}
		if len(question.Evidence) == 0 {
			out.Skipped++
		} else {
			out.Questions = append(out.Questions, question)
		}
	}
	return out, nil
}
