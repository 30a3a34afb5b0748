package slack

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"bobbin/app/core"
)

type envelope struct {
	Type           string          `json:"type"`
	Challenge      string          `json:"challenge"`
	App            string          `json:"api_app_id"`
	Team           string          `json:"team_id"`
	ID             string          `json:"event_id"`
	Authorizations []authorization `json:"authorizations"`
	Event          event           `json:"event"`
}

type authorization struct {
	Team string `json:"team_id"`
	User string `json:"user_id"` // the bot's
}

// event is an event of the Events API: what messages, edits and deletions have.
type event struct {
	Type        string          `json:"type"`
	Subtype     string          `json:"subtype"`
	Channel     string          `json:"channel"`
	ChannelType string          `json:"channel_type"`
	User        string          `json:"user"`
	UserTeam    string          `json:"user_team"`
	Team        string          `json:"team"`
	Bot         string          `json:"bot_id"`
	Username    string          `json:"username"`
	App         string          `json:"app_id"`
	BotProfile  *botProfile     `json:"bot_profile"`
	Text        string          `json:"text"`
	TS          string          `json:"ts"`
	Thread      string          `json:"thread_ts"`
	EventTS     string          `json:"event_ts"`
	DeletedTS   string          `json:"deleted_ts"`
	ClientMsgID string          `json:"client_msg_id"`
	Edited      *edit           `json:"edited"`
	Message     *event          `json:"message"`
	Previous    *event          `json:"previous_message"`
	Files       []file          `json:"files"`
	Blocks      json.RawMessage `json:"blocks"`
	Attachments json.RawMessage `json:"attachments"`
	Metadata    json.RawMessage `json:"metadata"`
}

// The fields of an event that the decoder must tolerate: in events of other types they have
// other shapes.
func (e *event) UnmarshalJSON(data []byte) error {
	type plain event
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return err
	}
	if !slices.Contains([]string{eventMessage, eventMention, eventStopped, ""}, head.Type) { // Bobbin handles no other
		e.Type = head.Type
		return nil
	}
	return json.Unmarshal(data, (*plain)(e))
}

type file struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Size     int64  `json:"size"`
	Mimetype string `json:"mimetype"`
	Download string `json:"url_private_download"`
	Private  string `json:"url_private"`
	Access   string `json:"file_access"`
}

type botProfile struct {
	App  string `json:"app_id"`
	Name string `json:"name"`
}

type edit struct {
	TS string `json:"ts"`
}

// The types and subtypes of events that Bobbin handles.
const (
	eventMessage     = "message"
	eventMention     = "app_mention"
	eventStopped     = "agent_session_stopped"
	eventUninstalled = "app_uninstalled"
	eventRevoked     = "tokens_revoked"
	subtypeChanged   = "message_changed"
	subtypeDeleted   = "message_deleted"
	subtypeTombstone = "tombstone" // a deleted message that has replies
)

// install returns the installation that the event is for.
func (e envelope) install() authorization {
	var a authorization
	if len(e.Authorizations) > 0 {
		a = e.Authorizations[0]
	}
	a.Team = cmp.Or(a.Team, e.Team)
	return a
}

// echo returns the post of the app that the event reports; false if it reports none.
func (e envelope) echo() (core.SlackPost, bool) {
	ev, install := e.Event, e.install()
	var stamp struct {
		Type    string `json:"event_type"`
		Payload struct {
			Delivery string         `json:"delivery_id"`
			Session  core.SessionID `json:"session_id"`
			Part     int            `json:"part"`
		} `json:"event_payload"`
	}
	if ev.Type != eventMessage || !ev.fromApp(e.App, install.User) || len(ev.Metadata) == 0 || json.Unmarshal(ev.Metadata, &stamp) != nil || stamp.Type != MetadataEvent {
		return core.SlackPost{}, false
	}
	p := core.SlackPost{SessionID: stamp.Payload.Session, Part: stamp.Payload.Part, Team: install.Team, Channel: ev.Channel, TS: ev.TS}
	p.ItemID = strings.TrimSuffix(stamp.Payload.Delivery, fmt.Sprintf("/%d", p.Part))
	return p, p.ItemID != "" && p.TS != "" && safeIDs(p.ItemID, p.Team, p.Channel, p.TS)
}

// fromApp reports whether the message was posted by the app.
func (e *event) fromApp(app, botUser string) bool {
	if e == nil {
		return false
	}
	profile := ""
	if e.BotProfile != nil {
		profile = e.BotProfile.App
	}
	return app != "" && (e.App == app || profile == app) || botUser != "" && e.User == botUser
}

// isEdit reports whether the change of a message is an edit of its text by its author. Slack
// also reports others: previews of links, replies, what we stream.
func (e *event) isEdit() bool {
	now, before := e.Message, e.Previous
	return now.Edited != nil && (before == nil || before.Edited == nil || before.Edited.TS != now.Edited.TS || before.Text != now.Text)
}

// changedMessage returns the message that an edit or a deletion changes, as it was before if Slack says
// that: a tombstone names no author.
func (e *event) changedMessage() *event { return cmp.Or(e.Previous, e.Message, &event{}) }

func (e *event) author() string { return cmp.Or(e.Bot, e.User) }

// root returns the ts of the thread's first message: of the thread that the message is in, or
// begins.
func (e *event) root() string { return cmp.Or(e.Thread, e.TS) }

func (e *event) mentions(user string) bool {
	return user != "" && (strings.Contains(e.Text, "<@"+user+">") || strings.Contains(e.Text, "<@"+user+"|"))
}

func (e *event) direct() bool { return e.ChannelType == "im" || strings.HasPrefix(e.Channel, "D") }

func userID(team, user string) string {
	if user == "" {
		return ""
	}
	return "slack:" + team + "/" + user
}

// messageKey is the key of a message in the inbox.
func messageKey(channel, ts string) string { return channel + "/" + ts }

// clientMessageID returns the name of a message of Slack in its session.
func clientMessageID(team, channel, ts string) string { return team + "/" + channel + "/" + ts }

func newItem(owner, app, key string, kind core.SlackKind, payload []byte) core.SlackItem {
	return core.SlackItem{
		ID: core.NewID[core.SlackItemID](), Owner: owner, App: app, Key: key, Kind: kind, Lane: key, Position: key,
		Payload: payload, CreatedAt: core.Now(),
	}
}

// attachment is what an app adds to its message, the preview of a link, or a message that was
// forwarded. Texts that are no texts are empty.
type attachment struct {
	Pretext   richText        `json:"pretext"`
	Title     richText        `json:"title"`
	TitleLink richText        `json:"title_link"`
	Text      richText        `json:"text"`
	Fallback  richText        `json:"fallback"`
	Author    richText        `json:"author_name"`
	Footer    richText        `json:"footer"` // of a forwarded message where it was posted
	Channel   richText        `json:"channel_id"`
	Preview   richText        `json:"from_url"` // the page of a link
	Shared    bool            `json:"is_share"`
	Unfurled  bool            `json:"is_msg_unfurl"`
	Files     []file          `json:"files"`
	Blocks    json.RawMessage `json:"blocks"`
	Messages  []struct {
		Message event `json:"message"`
	} `json:"message_blocks"` // what was forwarded, where it has blocks
	Fields []struct {
		Title richText `json:"title"`
		Value richText `json:"value"`
	} `json:"fields"`
}

// attachments returns what is attached to the message, but previews of pages.
func (e *event) attachments() []attachment {
	var list []attachment
	_ = json.Unmarshal(e.Attachments, &list) // what has another shape is left out
	return slices.DeleteFunc(list, func(a attachment) bool { return a.Preview != "" && !a.quotes() })
}

// quotes reports whether the attachment is another message.
func (a attachment) quotes() bool { return a.Shared || a.Unfurled }

// allFiles returns the files of the message, and of what was forwarded.
func (e *event) allFiles() []file {
	all := slices.Clone(e.Files)
	for _, a := range e.attachments() {
		all = append(all, a.Files...)
	}
	return all
}

// ownText returns the text of the message in Slack's markup. Where an app's message has blocks, they
// are what Slack shows, and the text is that of notifications.
func (e *event) ownText() string {
	if e.Bot == "" && strings.TrimSpace(e.Text) != "" {
		return e.Text
	}
	return cmp.Or(blockText(e.Blocks), e.Text)
}

// markup returns what the attachment says: of a forwarded message as a quotation with its author
// and channel.
func (a attachment) markup() string {
	title := string(a.Title)
	if a.TitleLink != "" && title != "" {
		title = "<" + string(a.TitleLink) + "|" + title + ">"
	}
	text := cmp.Or(string(a.Text), blockText(a.Blocks))
	for i := 0; text == "" && i < len(a.Messages); i++ {
		text = a.Messages[i].Message.ownText()
	}
	lines := []string{string(a.Pretext), title, text}
	if !a.quotes() {
		lines = slices.Insert(lines, 1, string(a.Author))
	}
	for _, f := range a.Fields {
		lines = append(lines, strings.Trim(string(f.Title)+": "+string(f.Value), ": "))
	}
	text = cmp.Or(joinLines(lines...), string(a.Fallback))
	if !a.quotes() || text == "" && len(a.Files) == 0 {
		return text
	}
	where := string(a.Footer)
	if where == "" && a.Channel != "" {
		where = "<#" + string(a.Channel) + ">"
	}
	from := "Forwarded from " + cmp.Or(string(a.Author), "somebody")
	if where != "" {
		from += " (" + where + ")"
	}
	return from + ":\n> " + strings.ReplaceAll(text, "\n", "\n> ")
}

func joinLines(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(s string) bool { return strings.TrimSpace(s) == "" }), "\n")
}
