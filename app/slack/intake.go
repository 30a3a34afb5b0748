package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
)

// What becomes of what Slack sends, for metrics.
const (
	outcomeStored   = "stored"
	outcomeRepeated = "repeated"
	outcomeIgnored  = "ignored"
	outcomeRefused  = "refused"
	outcomeFailed   = "failed"
	outcomeUnknown  = "unknown" // of a workspace without a token
)

// Intake stores what Slack sends. Safe for concurrent use.
type Intake struct {
	inbox    *repositories.SlackInbox
	posts    *repositories.SlackPosts
	owner    string
	observer core.Observer
	wake     func()
}

// Event stores an event of the Events API. ErrInvalid for what is not one. Its challenge is the
// answer to a url_verification.
func (in *Intake) Event(ctx context.Context, body []byte) (challenge string, err error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return "", core.Errorf(core.ErrInvalid, "the body is not an event of Slack")
	}
	label := eventLabel(e.Event.Type)
	item, wanted := in.eventItem(e, body)
	post, isEcho := e.echo() // its answer may be lost
	switch {
	case e.Type == "url_verification":
		return e.Challenge, nil
	case e.Type != "event_callback": // app_rate_limited, and what is still to be invented
		label = eventLabel(e.Type)
	case isEcho:
		if err := in.posts.Confirm(ctx, post); err != nil {
			return "", err
		}
	case wanted:
		return "", in.store(ctx, label, item)
	}
	in.observer.Count(core.CountSlack, 1, label, outcomeIgnored)
	return "", nil
}

// eventLabel returns the type of an event as metrics name it.
func eventLabel(kind string) string {
	switch kind {
	case eventMessage, eventMention, eventStopped, eventUninstalled, eventRevoked, "app_rate_limited", "app_home_opened", "member_joined_channel":
		return kind
	}
	return "other"
}

// store stores an item and wakes the worker.
func (in *Intake) store(ctx context.Context, name string, item core.SlackItem) error {
	item.Payload = []byte(strings.ToValidUTF8(string(item.Payload), "\uFFFD"))
	added, err := in.inbox.Add(ctx, item)
	switch {
	case err != nil:
		in.observer.Count(core.CountSlack, 1, name, outcomeFailed)
		return err
	case !added:
		in.observer.Count(core.CountSlack, 1, name, outcomeRepeated)
		return nil
	}
	in.observer.Count(core.CountSlack, 1, name, outcomeStored)
	in.wake()
	return nil
}

// eventItem returns the item of an event; ok is false for what needs no handling.
func (in *Intake) eventItem(e envelope, body []byte) (item core.SlackItem, ok bool) {
	ev, install := e.Event, e.install()
	if !safeIDs(e.App, e.ID, install.Team, ev.Channel, ev.User, ev.TS, ev.Thread, ev.EventTS, ev.DeletedTS) {
		return item, false
	}
	item = newItem(in.owner, e.App, e.ID, core.SlackEvent, body)
	switch {
	case e.ID == "":
		return item, false
	case ev.Type == eventUninstalled, ev.Type == eventRevoked:
		return item, true
	case ev.Type == eventStopped:
		item.User = userID(userTeam(ev, install.Team), ev.User)
		return item, true
	case ev.Type != eventMessage && ev.Type != eventMention:
		return item, false
	case ev.Subtype == subtypeChanged && ev.Message != nil:
		return in.changeItem(item, install.Team, ev, ev.Message), (ev.Message.Subtype == subtypeTombstone || ev.isEdit()) && !ev.Message.fromApp(e.App, install.User)
	case ev.Subtype == subtypeDeleted && ev.Previous != nil:
		return in.changeItem(item, install.Team, ev, &event{TS: ev.DeletedTS}), !ev.Previous.fromApp(e.App, install.User)
	case !isMessage(ev, e.App, install.User):
		return item, false
	}
	item.Kind, item.Key, item.Position = core.SlackMessage, messageKey(ev.Channel, ev.TS), ev.TS
	item.Lane = clientMessageID(install.Team, ev.Channel, ev.root())
	item.User = userID(userTeam(ev, install.Team), ev.User)
	switch {
	case ev.Type == eventMention && ev.Edited != nil: // the reply without the mention is done
		item.Key += "/" + ev.Edited.TS
	case ev.ClientMsgID != "":
		item.Gesture = core.SecretHash(ev.Channel + "/" + ev.User + "/" + ev.ClientMsgID)
	}
	return item, true
}

// changeItem completes the item of an edit or a deletion: those of one message are handled in order.
func (in *Intake) changeItem(item core.SlackItem, team string, ev event, of *event) core.SlackItem {
	item.Lane, item.Position = "change/"+clientMessageID(team, ev.Channel, of.TS), ev.EventTS
	item.User = userID(userTeam(*ev.changedMessage(), team), ev.changedMessage().author())
	return item
}

// isMessage reports whether a person wrote the message, and it may be for the bot.
func isMessage(ev event, app, botUser string) bool {
	switch ev.Subtype {
	case "", "file_share", "thread_broadcast":
	default:
		return false
	}
	if ev.Channel == "" || ev.TS == "" || ev.User == "" || ev.User == "USLACKBOT" || ev.Bot != "" || ev.fromApp(app, botUser) {
		return false
	}
	// a reply may be in a thread that belongs to a session
	return ev.Type == eventMention || ev.direct() || botUser == "" || ev.mentions(botUser) || ev.Thread != ""
}

// userTeam returns the workspace of the message's author: another one in a shared channel.
func userTeam(ev event, team string) string {
	return cmp.Or(ev.UserTeam, ev.Team, team)
}

// Command stores a slash command.
func (in *Intake) Command(ctx context.Context, form url.Values) error {
	return in.storeCommand(ctx, slackapi.SlashCommand{
		APIAppID: form.Get("api_app_id"), TeamID: form.Get("team_id"), ChannelID: form.Get("channel_id"), UserID: form.Get("user_id"),
		Text: form.Get("text"), ResponseURL: form.Get("response_url"), TriggerID: form.Get("trigger_id"),
	})
}

// storeCommand stores a slash command, as a request or the socket brought it.
func (in *Intake) storeCommand(ctx context.Context, c slackapi.SlashCommand) error {
	if c.TriggerID == "" || c.UserID == "" || !safeIDs(c.APIAppID, c.TeamID, c.ChannelID, c.UserID, c.TriggerID) {
		return core.Errorf(core.ErrInvalid, "the body is not a slash command of Slack")
	}
	c.Token, c.UserName = "", "" // nobody needs them
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	item := newItem(in.owner, c.APIAppID, "command/"+c.TriggerID, core.SlackCommand, payload)
	item.User = userID(c.TeamID, c.UserID)
	return in.store(ctx, "slash_command", item)
}

// Interaction stores a click or a shortcut. ErrInvalid for what is not one.
func (in *Intake) Interaction(ctx context.Context, body []byte) error {
	var c interaction
	if err := json.Unmarshal(body, &c); err != nil {
		return core.Errorf(core.ErrInvalid, "the body is not an interaction of Slack")
	}
	if !c.isKnown() {
		in.observer.Count(core.CountSlack, 1, "interaction", outcomeIgnored)
		return nil
	}
	key := "interaction/" + c.Trigger
	if !safeIDs(c.App, key, c.Team.ID, c.User.ID, c.channel()) || c.Trigger == "" {
		return core.Errorf(core.ErrInvalid, "the body is not an interaction of Slack")
	}
	item := newItem(in.owner, c.App, key, core.SlackInteraction, body)
	item.User = userID(c.userTeam(), c.User.ID)
	return in.store(ctx, "interaction", item)
}

// maxID is more characters than an id of Slack has.
const maxID = 200

// safeIDs reports whether the ids look like Slack's: they become parts of keys.
func safeIDs(ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' })
	})
}
