package core

import (
	"time"
)

// SlackKind says what Slack sent.
type SlackKind string

// What Slack sends.
const (
	SlackMessage     SlackKind = "message"     // also a mention
	SlackEvent       SlackKind = "event"       // everything else of the Events API
	SlackCommand     SlackKind = "command"     // a slash command
	SlackInteraction SlackKind = "interaction" // a click, or a shortcut
	SlackOAuthState  SlackKind = "oauth_state" // with which a browser came back from an installation: it is used once
)

// How long the inbox knows things.
const (
	// SlackLease is how long a process may work on an item.
	SlackLease = 2 * time.Minute
	// SlackMemory is how long an item that is done is remembered: Slack repeats deliveries for
	// up to a day.
	SlackMemory = 48 * time.Hour
	// SlackGesture is how far the two messages are apart that one gesture may become.
	SlackGesture = 2 * time.Minute
)

// SlackItem is something that Slack sent, stored before it was acknowledged.
type SlackItem struct {
	ID       SlackItemID `gorm:"primaryKey"`
	Owner    string
	App      string // the Slack app
	Key      string `gorm:"column:item_key"` // unique in the app: of a message its channel and ts
	Kind     SlackKind
	Lane     string // items of one lane are handled one after the other, by Position: a thread
	Position string // a timestamp of Slack
	User     string `gorm:"column:user_id"` // who caused it: slack:<team>/<user>; empty = nobody
	Gesture  string // the same of messages that one gesture may have become; empty = unknown
	Payload  []byte `gorm:"-"` // JSON

	SessionID SessionID `gorm:"serializer:ref"` // what it goes to, or went to; empty = nothing, or not known yet
	Attempts  int
	Error     string    // of the last attempt
	Lease     string    `gorm:"column:lease_owner"` // of the process at work
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
}

// SlackMessageQuery names a message of Slack.
type SlackMessageQuery struct {
	App, Key        string    // of its item
	SessionID       SessionID // empty = none
	ClientMessageID string
}

// SlackMessageRef is where a message of Slack is.
type SlackMessageRef struct {
	MessageID MessageID // empty = it is not in the session
	Pending   bool
}

// What people click in Slack. The value of a decision is the run and the approval:
// "<run>/<approval>"; that of feedback is a Rating.
const (
	SlackActionApprove   = "bobbin_approve"
	SlackActionDeny      = "bobbin_deny"
	SlackActionFeedback  = "bobbin_feedback"
	SlackShortcutContext = "bobbin_context" // a message shortcut
)
