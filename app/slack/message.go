package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// incoming is a message of a person, with all that is known of its thread.
type incoming struct {
	event

	app     string
	attempt int // at handling it: 1, 2, 3 …
	me      *slackapi.AuthTestResponse
	thread  core.SlackThread // as it is to be bound
	bound   core.SlackThread // as it is bound; without a session if it is not
	person  person
}

// handleEvent handles an event of the Events API.
func (s *Service) handleEvent(ctx context.Context, item core.SlackItem, e envelope) (core.SlackItem, error) {
	install := e.install()
	if e.Event.Type == eventUninstalled || e.Event.Type == eventRevoked {
		return item, s.handleRemoval(ctx, e.Event.Type, install.Team)
	}
	w, err := s.openWorkspace(ctx, install.Team)
	if err != nil {
		return item, err
	}
	if e.Event.Type == eventStopped { // somebody clicked Slack's own stop button
		thread, err := s.findThread(ctx, install.Team, e.Event.Channel, e.Event.Thread)
		if err != nil || thread.SessionID == "" {
			return item, err
		}
		item.SessionID = thread.SessionID
		return item, s.Chat.Stop(ctx, s.tenant(), thread.SessionID)
	}
	m := incoming{event: e.Event, app: e.App, attempt: item.Attempts, me: w.api.me, thread: core.SlackThread{
		Owner: s.Settings.Owner, Team: install.Team, Channel: e.Event.Channel, Thread: e.Event.root(), Mode: core.SlackTwoWay,
	}}
	if e.Event.Subtype == subtypeChanged || e.Event.Subtype == subtypeDeleted {
		return w.handleChange(ctx, item, m)
	}
	return w.handleMessage(ctx, item, m)
}

// handleMessage brings a message into the session of its thread, if it is for the bot.
func (s *workspace) handleMessage(ctx context.Context, item core.SlackItem, m incoming) (core.SlackItem, error) {
	var err error
	if m.fromApp(m.app, m.me.UserID) {
		return item, nil
	}
	if m.bound, err = s.findThread(ctx, m.thread.Team, m.Channel, m.thread.Thread); err != nil {
		return item, err
	}
	switch isBound := m.bound.SessionID != ""; {
	case isBound && !m.bound.Mode.Reads():
		return item, nil
	case !isBound && !m.direct() && !m.mentions(m.me.UserID):
		return item, nil
	}
	if duplicate, err := s.Inbox.Repeats(ctx, item); duplicate || err != nil {
		return item, err
	}
	if m.person, err = s.findAuthor(ctx, m); err != nil {
		return item, err
	}
	item.User = m.person.ID
	if s.Settings.MembersOnly && m.person.Guest {
		if m.direct() || m.mentions(m.me.UserID) {
			s.tellPerson(ctx, m.event, "Only members of this workspace get an answer.")
		}
		return item, nil
	}
	content, err := s.readContent(ctx, m.event)
	if err != nil {
		return item, err
	}
	if content == "" && len(m.allFiles()) == 0 {
		if m.direct() {
			s.tellPerson(ctx, m.event, "Nothing of this message can be read here. Write a text, or attach a file.")
		}
		return item, nil
	}
	if name, argument, ok := parseCommand(content); ok {
		answer := "There is no conversation in this thread yet."
		if m.bound.SessionID != "" {
			var err error
			if answer, err = s.runCommand(ctx, m.bound.SessionID, name, argument); err != nil {
				return item, err
			}
		}
		s.tellPerson(ctx, m.event, answer)
		return item, nil
	}
	item.SessionID, err = s.converse(ctx, m, content)
	if isFinal(err) {
		s.tellPerson(ctx, m.event, publicMessage(err))
		return item, nil
	}
	if err == nil && (m.bound.SessionID == "" || m.attempt > 1) && time.Since(m.writtenAt()) > lateTime {
		err = s.sendReplies(ctx, m)
	}
	return item, err
}

// findAuthor returns who wrote the message: a person, or a bot.
func (s *workspace) findAuthor(ctx context.Context, m incoming) (person, error) {
	team := userTeam(m.event, m.thread.Team)
	if m.Bot != "" {
		name := m.Username
		if name == "" && m.BotProfile != nil {
			name = m.BotProfile.Name
		}
		return person{ID: userID(team, m.Bot), Name: cmp.Or(cleanName(name), m.Bot)}, nil
	}
	return s.findPerson(ctx, team, m.User)
}

// findThread returns the thread as it is bound; without a session if it is not.
func (s *Service) findThread(ctx context.Context, team, channel, ts string) (core.SlackThread, error) {
	thread, err := s.Threads.Find(ctx, team, channel, ts)
	if errors.Is(err, core.ErrNotFound) {
		return core.SlackThread{}, nil
	}
	return thread, err
}

// readContent returns what the message says in Markdown, with what is attached to it and without the
// mention that begins it. Of nothing but a mention that remains: it means what was said before.
func (s *workspace) readContent(ctx context.Context, ev event) (string, error) {
	text := ev.ownText()
	if s.isOwn(ev) {
		text = ev.Text // its blocks have notes and buttons
	}
	var texts []string
	for _, a := range ev.attachments() {
		if text := a.markup(); text != "" {
			texts = append(texts, text)
		}
	}
	content := joinLines(stripMention(text, s.api.me.UserID), strings.Join(texts, "\n\n"))
	if content == "" && len(ev.allFiles()) == 0 {
		content = text
	}
	found := resolved{}
	var users, channels []string
	for _, part := range markedPart.FindAllStringSubmatch(content, -1) {
		target, label, _ := strings.Cut(part[1], "|")
		switch {
		case label != "":
		case strings.HasPrefix(target, "@"):
			users = append(users, target[1:])
		case strings.HasPrefix(target, "#"):
			channels = append(channels, target[1:])
		}
	}
	for i, id := range append(users, channels...) {
		if i >= maxMentions || !safeIDs(id) {
			break
		}
		find := s.findUser
		if i >= len(users) {
			find = func(ctx context.Context, id string) (person, error) {
				return s.Clients.findChannel(ctx, s.api, s.team, id)
			}
		}
		p, err := find(ctx, id)
		if err != nil {
			return "", err
		}
		found[id] = p.Name
	}
	return strings.TrimSpace(decodeMarkup(content, found)), nil
}

// isOwn reports whether the app's bot in the workspace wrote the message.
func (s *workspace) isOwn(ev event) bool {
	return ev.User == s.api.me.UserID || ev.Bot != "" && ev.Bot == s.api.me.BotID
}

// converse sends the message to the session of its thread, which it returns.
func (s *workspace) converse(ctx context.Context, m incoming, content string) (core.SessionID, error) {
	session, err := s.Chat.OpenSession(ctx, s.tenant(), m.thread.Alias(), core.Session{
		Agent: s.Settings.Agent, UserID: m.person.ID, Source: core.SourceSlack, Timezone: m.person.Timezone,
		Speakers: m.thread.Speakers(),
	})
	if err != nil {
		return "", err
	}
	if err := s.copyEarlier(ctx, m, session.ID); err != nil {
		return session.ID, err
	}
	if m.bound.SessionID != session.ID {
		m.thread.SessionID = session.ID
		if err := s.Chat.BindSlack(ctx, m.thread); err != nil {
			return session.ID, err
		}
	}
	parts, notes, err := s.fetchFiles(ctx, m, session.ID)
	if err != nil {
		return session.ID, err
	}
	if len(notes) > 0 {
		s.tellPerson(ctx, m.event, strings.Join(notes, "\n"))
	}
	if strings.TrimSpace(content) == "" && len(parts) == 0 {
		return session.ID, nil
	}
	_, err = s.Chat.Send(ctx, s.tenant(), core.SendMessage{
		SessionID: session.ID, User: m.person.ID, Content: content, Parts: parts, Source: core.SourceSlack, Author: m.person.Name,
		ClientMessageID: clientMessageID(m.thread.Team, m.Channel, m.TS), Metadata: slackMetadata(m.thread.Team, m.event),
	})
	if errors.Is(err, core.ErrConflict) { // a later message came first, and this one with the history
		if known, findErr := s.isKnown(ctx, m, session.ID, m.TS); known || findErr != nil {
			return session.ID, findErr
		}
	}
	return session.ID, err
}

func slackMetadata(team string, ev event) json.RawMessage {
	data, err := json.Marshal(map[string]any{"slack": map[string]string{"team": team, "channel": ev.Channel, "ts": ev.TS, "user": ev.User}})
	if err != nil {
		panic("slack: " + err.Error()) // these are texts
	}
	return data
}

// publicMessage returns what a person may read of an error.
func publicMessage(err error) string {
	if shown := core.ShownMessage(err, ""); shown != "" {
		return "This message was not accepted: " + shown
	}
	return "This message was not accepted."
}

// tellPerson posts a text in the thread that only the message's author sees. It says so in the
// log if that fails: the item is done all the same.
func (s *workspace) tellPerson(ctx context.Context, ev event, text string) {
	options := []slackapi.MsgOption{slackapi.MsgOptionText(escapeText(text), false)}
	if ev.Thread != "" || !ev.direct() {
		options = append(options, slackapi.MsgOptionTS(ev.root()))
	}
	if _, err := s.api.PostEphemeralContext(ctx, ev.Channel, ev.User, options...); err != nil {
		s.Logger.WarnContext(ctx, "message to a user of Slack not posted", "channel", ev.Channel, "err", err)
	}
}

// runWait is how often a change looks whether the session's runs have ended.
const runWait = 2 * time.Second

// errRunning says that an item cannot be handled before the session's runs have ended.
var errRunning = &laterError{after: runWait, cause: errors.New("the session has a run")}

// handleChange brings an edit or a deletion into the session. It waits until the message is
// there, and while the session has a run.
func (s *workspace) handleChange(ctx context.Context, item core.SlackItem, m incoming) (core.SlackItem, error) {
	ts, thread := m.DeletedTS, ""
	if m.Previous != nil {
		thread = m.Previous.root()
	}
	if m.Subtype == subtypeChanged {
		ts, thread = m.Message.TS, m.Message.root()
	}
	if thread == "" {
		thread = ts
	}
	team := m.thread.Team
	var err error
	if m.bound, err = s.findThread(ctx, team, m.Channel, thread); err != nil {
		return item, err
	}
	q := core.SlackMessageQuery{App: item.App, Key: messageKey(m.Channel, ts), SessionID: m.bound.SessionID, ClientMessageID: clientMessageID(team, m.Channel, ts)}
	found, err := s.Inbox.FindMessage(ctx, q)
	switch {
	case err != nil:
		return item, err
	case found.Pending:
		return s.holdChange(ctx, item, m)
	case found.MessageID == "":
		return item, nil // it never came here
	}
	item.SessionID = m.bound.SessionID
	if m.Subtype == subtypeChanged && m.Message.Subtype != subtypeTombstone {
		err = s.reviseMessage(ctx, found.MessageID, m)
	} else {
		err = s.Chat.DeleteMessage(ctx, s.tenant(), m.bound.SessionID, found.MessageID)
	}
	if errors.Is(err, core.ErrConflict) {
		return s.holdChange(ctx, item, m)
	}
	return item, err
}

// holdChange lets a change wait. Its item gets the session and the author's id in Bobbin, by which
// purges find it; if Slack does not say who that is, it keeps the id in Slack.
func (s *workspace) holdChange(ctx context.Context, item core.SlackItem, m incoming) (core.SlackItem, error) {
	item.SessionID = m.bound.SessionID
	author := m.changedMessage()
	if author.User != "" && s.Settings.LinkByEmail {
		if who, err := s.findPerson(ctx, userTeam(*author, m.thread.Team), author.User); err == nil {
			item.User = who.ID
		}
	}
	return item, errRunning
}

// reviseMessage brings an edit into the session. Its author is told if it is not accepted.
func (s *workspace) reviseMessage(ctx context.Context, id core.MessageID, m incoming) error {
	if !m.bound.Mode.Reads() {
		return nil
	}
	edited := *m.Message
	edited.Channel, edited.ChannelType = m.Channel, m.ChannelType
	content, err := s.readContent(ctx, edited)
	if err != nil {
		return err
	}
	_, err = s.Chat.Revise(ctx, s.tenant(), m.bound.SessionID, id, content)
	switch {
	case errors.Is(err, core.ErrNotFound): // deleted meanwhile, or canceled before its turn
		return nil
	case isFinal(err) && !errors.Is(err, core.ErrConflict):
		s.tellPerson(ctx, edited, publicMessage(err))
		return nil
	}
	return err
}
