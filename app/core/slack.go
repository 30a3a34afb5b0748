package core

import (
	"encoding/json"
	"strings"
	"time"
)

// SlackMode says in which directions a thread and its session follow each other.
type SlackMode string

// The modes of a thread.
const (
	SlackTwoWay  SlackMode = "two_way"  // of a session that began in Slack
	SlackToSlack SlackMode = "to_slack" // the thread shows the session
	SlackToWeb   SlackMode = "to_web"   // the session gets the thread's messages
	SlackOff     SlackMode = "off"
)

// Posts reports whether what happens in the session is posted to the thread.
func (m SlackMode) Posts() bool { return m == SlackTwoWay || m == SlackToSlack }

// Reads reports whether messages of the thread go to the session.
func (m SlackMode) Reads() bool { return m == SlackTwoWay || m == SlackToWeb }

// SlackThread is a thread of Slack and the session that it belongs to. Each has at most one
// of the other.
type SlackThread struct {
	SessionID SessionID `json:"session_id"`
	Owner     string    `json:"-"`
	Team      string    `json:"team" gorm:"primaryKey"`
	Channel   string    `json:"channel" gorm:"primaryKey"`
	Thread    string    `json:"thread" gorm:"primaryKey"` // ts of its first message
	Mode      SlackMode `json:"mode"`
}

// SlackChange says that a session was attached to a thread of Slack, that the mode changed, or that
// it was detached: an empty JSON object. Zero = no change.
type SlackChange struct {
	Changed bool
	Thread  *SlackThread // nil = detached
}

// MarshalJSON returns the thread, or an empty object.
func (c SlackChange) MarshalJSON() ([]byte, error) {
	if c.Thread == nil {
		return []byte("{}"), nil
	}
	return json.Marshal(c.Thread)
}

// UnmarshalJSON reads the thread, or an empty object.
func (c *SlackChange) UnmarshalJSON(data []byte) error {
	var t SlackThread
	if err := json.Unmarshal(data, &t); err != nil {
		return err
	}
	if c.Changed = true; t != (SlackThread{}) {
		c.Thread = &t
	}
	return nil
}

// SlackPlace is where people find a thread in Slack.
type SlackPlace struct {
	Link        string `json:"link,omitempty" doc:"Of the thread in Slack. Absent while Slack does not say."`
	ChannelName string `json:"channel_name,omitempty" doc:"Likewise; absent for direct messages."`
}

// SlackThreadStatus is a thread and what is wrong with its posts.
type SlackThreadStatus struct {
	SlackThread
	SlackPlace

	Posted      int        `json:"posted" doc:"Messages of the session that are in Slack as posts of Bobbin."`
	BehindSince *time.Time `json:"behind_since,omitempty" doc:"When the first thing happened that is not posted. Absent if nothing is missing."`
	Reason      string     `json:"reason,omitempty" doc:"Why the last attempt to post it failed."`
	NextAt      *time.Time `json:"next_at,omitempty" doc:"Time of the next attempt."`

	Faults []SlackFault `json:"faults,omitempty" doc:"The newest ones first."`
}

// MaxSlackFaults is how many faults of a thread are listed.
const MaxSlackFaults = 100

// SlackFault is a post that Slack refused, or whose change it refused, or of which it is unknown
// whether it is in Slack.
type SlackFault struct {
	ItemID    string         `json:"item_id" doc:"The message or approval that the post shows."`
	Part      int            `json:"part" doc:"Of a long text: 0, 1, 2 …"`
	State     SlackPostState `json:"state" enum:"failed,unknown,sent"` // failed, unknown, or sent: it shows something else than the item
	Reason    string         `json:"reason"`
	CreatedAt time.Time      `json:"created_at"`
}

// SlackPostFix is what is done about a post that is not in Slack as it should be.
type SlackPostFix struct {
	SessionID SessionID   `path:"id,session" doc:"The session." example:"01a1fd1b-c2ab-74fe-af4a-73c58ae3b243"`
	ItemID    string      `path:"item,message" doc:"The message or approval that the post shows." example:"01a1fd1c-7a10-7000-8000-000000000005"`
	Part      int         `json:"part" default:"0" doc:"Of a long text: 0, 1, 2 …"`
	Action    SlackAction `json:"action" required:"true" enum:"send,look,dismiss" doc:"'send': send it, or its change, again, below what is there by now; one that is 'unknown' may then be in Slack twice. 'look': look in the thread whether one that is 'unknown' is there; if not, it has failed. 'dismiss': leave it as it is, and list it no more."`
}

// SlackAction is what a person does about a SlackFault.
type SlackAction string

// What a person can do.
const (
	SlackSend    SlackAction = "send"    // send the post, or its change, again; an unknown one may then be in Slack twice
	SlackLook    SlackAction = "look"    // look in the thread whether an unknown post is there; if not, it has failed
	SlackDismiss SlackAction = "dismiss" // leave it as it is, and list it no more
)

// Speakers returns the Session.Speakers of a session that the thread is bound to; empty for a
// direct message, in which one person writes.
func (t SlackThread) Speakers() string {
	if strings.HasPrefix(t.Channel, "D") {
		return ""
	}
	return ManySpeakers
}

// Alias returns the name of the thread as the alias of its session.
func (t SlackThread) Alias() Alias {
	return Alias{Surface: SourceSlack, Name: t.Team + "/" + t.Channel + "/" + t.Thread}
}

// SlackBacklog is a thread that a process has leased to post what is missing there.
type SlackBacklog struct {
	SlackThread
	FirstSeq int64 // of messages: those up to it are not posted
	SentSeq  int64 // of events: what they report was posted
}

// SlackClaim asks for threads that are behind their sessions.
type SlackClaim struct {
	Worker string
	Lease  time.Duration
	Limit  int
	Busy   []string // channels, as "<team>/<channel>", whose threads are left out
}

// SlackPostKind says what a post shows.
type SlackPostKind string

// The kinds of posts.
const (
	SlackPostMessage  SlackPostKind = "message"
	SlackPostApproval SlackPostKind = "approval"
)

// SlackPostState is what became of a post.
type SlackPostState string

// The states of a post.
const (
	SlackPostPending SlackPostState = "pending" // it is not in Slack, and will be sent
	SlackPostSending SlackPostState = "sending" // it may be in Slack already
	SlackPostSent    SlackPostState = "sent"
	SlackPostFailed  SlackPostState = "failed"  // Slack refused it
	SlackPostUnknown SlackPostState = "unknown" // Slack's answer was lost, and Slack does not say whether it is there
	SlackPostRemoved SlackPostState = "removed"
	SlackPostPurged  SlackPostState = "purged" // removed, because its session is purged
	SlackPostGone    SlackPostState = "gone"   // not in Slack any more when its session was purged
)

// SlackPost is a message in Slack that shows a part of an item: a message or an approval.
type SlackPost struct {
	SessionID             SessionID `gorm:"primaryKey"`
	ItemID                string    `gorm:"primaryKey"`
	Part                  int       `gorm:"primaryKey;autoIncrement:false"` // 0, 1, 2 … of a long text
	Owner                 string
	Kind                  SlackPostKind
	Team, Channel, Thread string
	TS                    string // empty until it is known
	State                 SlackPostState
	Streaming             bool
	OffPath               bool // marked in Slack as not on the current path
	From                  int  `gorm:"column:text_from"` // bytes of the message that the part shows
	To                    int  `gorm:"column:text_to"`
	Hash                  string
	Error                 string    // of a failed or unknown post
	CreatedAt             time.Time `gorm:"autoCreateTime:false"`
}

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

// SlackInstallationState says whether the tokens of an installation work.
type SlackInstallationState string

// The states of an installation.
const (
	SlackInstalled SlackInstallationState = "active"
	SlackRevoked   SlackInstallationState = "revoked" // Slack says that the app was removed, or its tokens revoked
)

// SlackInstallation is a workspace of Slack in which the app was installed by OAuth.
type SlackInstallation struct {
	Team      string `gorm:"primaryKey"` // id of the workspace
	Name      string
	App       string
	BotUser   string
	Owner     string // of the sessions
	Scopes    string // separated by commas
	Tokens    []byte // sealed; nil when revoked
	State     SlackInstallationState
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}
