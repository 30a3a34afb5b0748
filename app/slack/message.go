package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

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
		return item, s.handleRemoval(ctx, e.Event.Type, install)
	}
	w, err := s.openWorkspace(ctx, install.Enterprise, install.Team)
	if err != nil {
		return item, err
	}
	if e.Event.Type == eventStopped {
		return w.handleStopButton(ctx, item, e.Event)
	}
	m := incoming{event: e.Event, app: e.App, attempt: item.Attempts, me: w.api.me, thread: core.SlackThread{
		Owner: s.Settings.Owner, Enterprise: install.Enterprise, Team: install.Team, Channel: e.Event.Channel, Thread: e.Event.root(), Mode: core.SlackTwoWay,
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
	if err := s.updateEnterprise(ctx, &m); err != nil {
		return item, err
	}
	switch isBound := m.bound.SessionID != ""; {
	case isBound && !m.bound.Mode.Reads():
		return item, nil
	case (!isBound && !m.direct() || m.Bot != "") && !m.mentions(m.me.UserID):
		return item, nil
	}
	if m.Bot != "" {
		if tired, err := s.exceedsBotTurns(ctx, m.bound.SessionID); tired || err != nil {
			return item, err
		}
	}
	if twice, err := s.Inbox.Repeats(ctx, item); twice || err != nil {
		return item, err
	}
	if m.person, err = s.findAuthor(ctx, m); err != nil {
		return item, err
	}
	item.User = m.person.ID
	content, err := s.readContent(ctx, m)
	if err != nil {
		return item, err
	}
	if name, argument, ok := parseCommand(content); ok {
		return item, s.runThreadCommand(ctx, m, name, argument)
	}
	item.SessionID, err = s.converse(ctx, m, content)
	if isFinal(err) {
		s.tellPerson(ctx, m.event, publicMessage(err))
		return item, nil
	}
	if err == nil && (m.bound.SessionID == "" || m.attempt > 1) && m.isLate() {
		err = s.sendReplies(ctx, m)
	}
	return item, err
}

// updateEnterprise stores the organization of a bound thread if the event names another one: the
// workspace has joined it, or the thread was attached without. An event without one says nothing.
func (s *Service) updateEnterprise(ctx context.Context, m *incoming) error {
	if m.bound.SessionID == "" || m.bound.Enterprise == m.thread.Enterprise {
		return nil
	}
	if m.thread.Enterprise == "" {
		m.thread.Enterprise = m.bound.Enterprise
		return nil
	}
	m.bound.Enterprise = m.thread.Enterprise
	return s.Chat.BindSlack(ctx, m.bound)
}

// findAuthor returns who wrote the message: a person, or a bot.
func (s *workspace) findAuthor(ctx context.Context, m incoming) (person, error) {
	team := userTeam(m.event, m.thread.Team)
	if m.Bot != "" {
		return person{ID: userID(team, m.Bot), Name: m.botName()}, nil
	}
	return s.findPerson(ctx, team, m.User)
}

// exceedsBotTurns reports whether bots wrote all of the last messages that the session
// answered, and so many that no further one is answered.
func (s *Service) exceedsBotTurns(ctx context.Context, session core.SessionID) (bool, error) {
	limit := s.Settings.MaxBotTurns
	if limit == 0 || session == "" {
		return limit == 0, nil
	}
	last, err := s.Runs.List(ctx, s.tenant(), session, core.PageQuery{Limit: limit})
	if err != nil {
		return false, err
	}
	ofPeople := func(r core.Run) bool { return !isBot(r.User) }
	return len(last.Items) == limit && !slices.ContainsFunc(last.Items, ofPeople), nil
}

// findThread returns the thread as it is bound; without a session if it is not.
func (s *Service) findThread(ctx context.Context, team, channel, ts string) (core.SlackThread, error) {
	thread, err := s.Threads.Find(ctx, team, channel, ts)
	if errors.Is(err, core.ErrNotFound) {
		return core.SlackThread{}, nil
	}
	return thread, err
}

// readContent returns the message's text in Markdown, without the mention that begins it.
func (s *workspace) readContent(ctx context.Context, m incoming) (string, error) {
	text := m.Text
	if strings.TrimSpace(text) == "" {
		text = blockText(m.Blocks)
	}
	stripped := stripMention(text, m.me.UserID)
	if strings.TrimSpace(stripped) == "" && len(m.Files) == 0 {
		stripped = text // nothing but a mention: of what was said before
	}
	return s.decode(ctx, stripped)
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
	if m.bound.SessionID == "" {
		if err := s.copyHistory(ctx, m, session.ID); err != nil {
			return session.ID, err
		}
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

// slackMetadata says where in Slack a message is.
func slackMetadata(team string, ev event) json.RawMessage {
	data, err := json.Marshal(map[string]any{"slack": map[string]string{"team": team, "channel": ev.Channel, "ts": ev.TS, "user": ev.User}})
	if err != nil {
		panic("slack: " + err.Error()) // these are texts
	}
	return data
}

// How much of a thread's history is read, and copied: its first message and the newest ones.
const (
	historyPage  = 200
	historyPages = 5
	maxHistory   = 200
)

// copyHistory appends what was said in the thread before the message. It may be repeated.
func (s *workspace) copyHistory(ctx context.Context, m incoming, session core.SessionID) error {
	if m.Thread == "" || m.Thread == m.TS {
		return nil
	}
	earlier, err := s.readThread(ctx, slackapi.GetConversationRepliesParameters{ChannelID: m.Channel, Timestamp: m.Thread, Latest: m.TS})
	if err != nil {
		return err
	}
	earlier = slices.DeleteFunc(earlier, func(old slackapi.Message) bool { return old.Timestamp >= m.TS })
	if n := len(earlier); n > maxHistory {
		earlier = append(earlier[:1:1], earlier[n-maxHistory+1:]...)
	}
	for _, old := range earlier {
		known, err := s.isKnown(ctx, m, session, old.Timestamp)
		if err == nil && !known {
			err = s.copyMessage(ctx, m, session, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isKnown reports whether the session has the message with the ts, or its thread shows it there.
func (s *Service) isKnown(ctx context.Context, m incoming, session core.SessionID, ts string) (bool, error) {
	found, err := s.Inbox.FindMessage(ctx, core.SlackMessageQuery{SessionID: session, ClientMessageID: clientMessageID(m.thread.Team, m.Channel, ts)})
	if err != nil || found.MessageID != "" {
		return true, err
	}
	post, err := s.Posts.PostAt(ctx, m.thread.Team, m.Channel, ts)
	if errors.Is(err, core.ErrNotFound) {
		return false, nil
	}
	return post.SessionID == session, err
}

// copyMessage appends an earlier message of the thread to the session.
func (s *workspace) copyMessage(ctx context.Context, m incoming, session core.SessionID, old slackapi.Message) error {
	message, err := s.historyMessage(ctx, m, old)
	if err != nil || message.Content == "" {
		return err
	}
	_, _, err = s.Transfer.Append(ctx, s.tenant(), session, message)
	switch {
	case errors.Is(err, core.ErrTooLarge):
		return nil
	case errors.Is(err, core.ErrConflict): // a run of another surface is at work
		return waitError{runWait}
	case err != nil:
		return fmt.Errorf("history of the thread: %w", err)
	}
	return nil
}

// readThread returns messages of a thread.
func (s *workspace) readThread(ctx context.Context, q slackapi.GetConversationRepliesParameters) ([]slackapi.Message, error) {
	var all []slackapi.Message
	q.Limit = historyPage
	for range historyPages {
		page, more, next, err := s.api.GetConversationRepliesContext(ctx, &q)
		var refused slackapi.SlackErrorResponse
		if errors.As(err, &refused) && refused.Err == "missing_scope" {
			s.Logger.WarnContext(ctx, "history of a thread not read: the app lacks a scope", "channel", q.ChannelID)
			return nil, nil
		}
		if errors.As(err, &refused) && refused.Err == "thread_not_found" { // deleted meanwhile
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("conversations.replies: %w", err)
		}
		all = append(all, page...)
		if q.Cursor = next; !more || next == "" {
			break
		}
	}
	return all, nil
}

// historyMessage returns a message of the history as it enters the session: the bot's own as
// the assistant's.
func (s *workspace) historyMessage(ctx context.Context, m incoming, old slackapi.Message) (core.Message, error) {
	text, err := s.decode(ctx, stripMention(old.Text, m.me.UserID))
	if err != nil {
		return core.Message{}, err
	}
	for _, f := range old.Files {
		text += "\n[file: " + core.CleanText(core.Clip(f.Name, 200)) + "]"
	}
	out := core.Message{
		Role: core.RoleUser, Content: strings.TrimSpace(text), Source: core.SourceSlack,
		ClientMessageID: clientMessageID(m.thread.Team, m.Channel, old.Timestamp),
		Metadata:        slackMetadata(m.thread.Team, event{Channel: m.Channel, TS: old.Timestamp, User: old.User}),
	}
	switch {
	case old.User == m.me.UserID, old.BotID != "" && old.BotID == m.me.BotID:
		out.Role = core.RoleAssistant
	case old.BotID != "":
		bot := event{Bot: old.BotID, Username: old.Username}
		if old.BotProfile != nil {
			bot.BotProfile = &botProfile{Name: old.BotProfile.Name}
		}
		out.AuthorID, out.Author = userID(m.thread.Team, old.BotID), bot.botName()
	case old.User != "":
		author, err := s.findPerson(ctx, cmp.Or(old.Team, m.thread.Team), old.User)
		if err != nil {
			return core.Message{}, err
		}
		out.AuthorID, out.Author = author.ID, author.Name
	}
	return out, nil
}

// publicMessage returns what a person may read of an error.
func publicMessage(err error) string {
	var shown *core.Error
	if errors.As(err, &shown) {
		return "This message was not accepted: " + shown.Message
	}
	return "This message was not accepted."
}

// tellPerson posts a text in the thread that only the message's author sees. It says so in the
// log if that fails: the item is done all the same.
func (s *workspace) tellPerson(ctx context.Context, ev event, text string) {
	if ev.Bot != "" {
		return
	}
	options := []slackapi.MsgOption{slackapi.MsgOptionText(escapeText(text), false)}
	if ev.Thread != "" || !ev.direct() {
		options = append(options, slackapi.MsgOptionTS(ev.root()))
	}
	if _, err := s.api.PostEphemeralContext(ctx, ev.Channel, ev.User, options...); err != nil {
		s.Logger.WarnContext(ctx, "message to a user of Slack not posted", "channel", ev.Channel, "err", err)
	}
}
