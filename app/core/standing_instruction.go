package core

import "time"

// StandingInstruction is what a user set for the whole conversation: recognized in a message
// of the user, or added by hand.
type StandingInstruction struct {
	ID        InstructionID `json:"id" gorm:"primaryKey;type:uuid"`
	SessionID SessionID     `json:"session_id" gorm:"type:uuid"`
	MessageID MessageID     `json:"message_id,omitempty" doc:"The message in which it was recognized. Absent if it was added by hand." gorm:"serializer:ref;type:uuid"`
	Seq       int64         `json:"seq" doc:"Number of that message; if it was added by hand, of the last message at that time."`
	Text      string        `json:"text" doc:"As the user wrote it, in one line."`
	Author    string        `json:"author,omitempty" doc:"Author of the message, where several people write." gorm:"-"`
	Language  string        `json:"language,omitempty" doc:"Of the text, such as en. Absent if unknown."`
	State     StandingState `json:"state" enum:"standing,replaced,withdrawn,removed" doc:"replaced: a newer one says otherwise; withdrawn: a later message takes it back; removed: by hand." gorm:"-"`
	EndSeq    int64         `json:"ended_by,omitempty" min:"1" doc:"Number of the message that replaced or withdrew it." gorm:"-"`
	Placement Placement     `json:"placement,omitempty" enum:"standing,verbatim,left_out" doc:"In context reports: listed at the beginning of the next prompt, in its own message, or not in the prompt because it does not fit." gorm:"-"`
	CreatedAt time.Time     `json:"created_at" gorm:"autoCreateTime:false"`
	EditedAt  *time.Time    `json:"edited_at,omitempty" doc:"When its text was last edited by hand."`

	Owner     string     `json:"-"`
	Number    int        `json:"-"`          // within its message: 1, 2, 3 …
	Speaker   string     `json:"-" gorm:"-"` // who set it (SpeakerOf); empty = unknown, or added by hand
	Topic     string     `json:"-"`          // what it is about; of two of the same topic of a speaker the newer one stands
	Withdraws bool       `json:"-"`          // it takes an earlier one back, and does not stand itself
	Amends    bool       `json:"-"`          // it changes an earlier one, and stands only if there is one
	RemovedAt *time.Time `json:"-"`          // when a user removed it; nil = not removed
}

// StandingState says whether an instruction stands.
type StandingState string

// The states of standing instructions.
const (
	InstructionStands    StandingState = "standing"
	InstructionReplaced  StandingState = "replaced"  // a newer one says otherwise
	InstructionWithdrawn StandingState = "withdrawn" // a later message takes it back
	InstructionRemoved   StandingState = "removed"   // by hand
)

// Limits of standing instructions.
const (
	MaxInstructionText   = 500    // characters of one
	MaxInstructions      = 10_000 // that a session stores: of more the newest
	MaxAddedInstructions = 200    // of these by hand
	MaxPromptedStanding  = 100    // that stand and that prompts consider: the newest
)

// ByHand reports whether the text is not that of a message.
func (i StandingInstruction) ByHand() bool { return i.MessageID == "" || i.EditedAt != nil }

// StoredBytes returns what storing the instruction counts.
func (i StandingInstruction) StoredBytes() int64 { return int64(StoredRow + len(i.Text)) }

// NewInstruction adds a standing instruction by hand.
type NewInstruction struct {
	SessionID SessionID
	Text      string
	Language  string
	Topic     string
}
