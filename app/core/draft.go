package core

import "encoding/json"

// Draft is what a run has said so far of the message that it is writing, as it is
// saved now and then in Run.Partial.
type Draft struct {
	Attempt   int       `json:"attempt,omitempty"` // of the run that writes it
	MessageID MessageID `json:"message_id"`        // empty = no message is on its way
	ParentID  MessageID `json:"parent_id,omitempty"`
	Text      string    `json:"text"`
}

// Encode returns the draft as Run.Partial holds it.
func (d Draft) Encode() (string, error) {
	raw, err := json.Marshal(d)
	return string(raw), err
}

// DecodeDraft reads what Encode wrote; anything else is no draft.
func DecodeDraft(partial string) Draft {
	var d Draft
	if partial == "" || json.Unmarshal([]byte(partial), &d) != nil {
		return Draft{}
	}
	return d
}

// Wakeup wakes other processes. It may be lost: what it says is in the database, where
// they look for it now and then.
type Wakeup struct {
	Cancel RunID `json:"cancel,omitempty"` // a run that somebody asked to cancel
	Free   bool  `json:"free,omitempty"`   // there may be runs that nobody works on
	Due    bool  `json:"due,omitempty"`    // there may be deliveries that nobody works on
}
