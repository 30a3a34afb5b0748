package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
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

// storeEvent stores an event of the Events API. ErrInvalid for what is not one. Its challenge is the
// answer to a url_verification.
func (s *Service) storeEvent(ctx context.Context, body []byte) (challenge string, err error) {
	var e envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return "", core.Errorf(core.ErrInvalid, "the body is not an event of Slack")
	}
	label := eventLabel(e.Event.Type)
	item, wanted := s.eventItem(e, body)
	post, isEcho := e.echo() // its answer may be lost
	switch {
	case e.Type == "url_verification":
		return e.Challenge, nil
	case e.Type != "event_callback": // app_rate_limited, and what is still to be invented
		label = eventLabel(e.Type)
	case isEcho:
		if err := s.Posts.Confirm(ctx, post); err != nil {
			return "", err
		}
	case wanted:
		return "", s.storeItem(ctx, label, item)
	}
	s.Observer.Count(core.CountSlack, 1, label, outcomeIgnored)
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

// storeItem stores an item and wakes the workers.
func (s *Service) storeItem(ctx context.Context, name string, item core.SlackItem) error {
	item.Payload = []byte(strings.ToValidUTF8(string(item.Payload), "\uFFFD"))
	added, err := s.Inbox.Add(ctx, item)
	switch {
	case err != nil:
		s.Observer.Count(core.CountSlack, 1, name, outcomeFailed)
		return err
	case !added:
		s.Observer.Count(core.CountSlack, 1, name, outcomeRepeated)
		return nil
	}
	s.Observer.Count(core.CountSlack, 1, name, outcomeStored)
	core.Signal(s.wake)
	return nil
}

// eventItem returns the item of an event; ok is false for what needs no handling.
func (s *Service) eventItem(e envelope, body []byte) (item core.SlackItem, ok bool) {
	ev, install := e.Event, e.install()
	if !safeIDs(e.App, e.ID, install.Team, ev.Channel, ev.User, ev.TS, ev.Thread, ev.EventTS, ev.DeletedTS) {
		return item, false
	}
	item = newItem(s.Settings.Owner, e.App, e.ID, core.SlackEvent, body)
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
		return changeItem(item, install.Team, ev, ev.Message), (ev.Message.Subtype == subtypeTombstone || ev.isEdit()) && !ev.Message.fromApp(e.App, install.User)
	case ev.Subtype == subtypeDeleted && ev.Previous != nil:
		return changeItem(item, install.Team, ev, &event{TS: ev.DeletedTS}), !ev.Previous.fromApp(e.App, install.User)
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
func changeItem(item core.SlackItem, team string, ev event, of *event) core.SlackItem {
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

// storeCommand stores a slash command, as a request or the socket brought it.
func (s *Service) storeCommand(ctx context.Context, c slackapi.SlashCommand) error {
	if c.TriggerID == "" || c.UserID == "" || !safeIDs(c.APIAppID, c.TeamID, c.ChannelID, c.UserID, c.TriggerID) {
		return core.Errorf(core.ErrInvalid, "the body is not a slash command of Slack")
	}
	c.Token, c.UserName = "", "" // nobody needs them
	payload, err := json.Marshal(c)
	if err != nil {
		return err
	}
	item := newItem(s.Settings.Owner, c.APIAppID, "command/"+c.TriggerID, core.SlackCommand, payload)
	item.User = userID(c.TeamID, c.UserID)
	return s.storeItem(ctx, "slash_command", item)
}

// storeInteraction stores a click or a shortcut. ErrInvalid for what is not one.
func (s *Service) storeInteraction(ctx context.Context, body []byte) error {
	var c interaction
	if err := json.Unmarshal(body, &c); err != nil {
		return core.Errorf(core.ErrInvalid, "the body is not an interaction of Slack")
	}
	if !c.isKnown() {
		s.Observer.Count(core.CountSlack, 1, "interaction", outcomeIgnored)
		return nil
	}
	key := "interaction/" + c.Trigger
	if !safeIDs(c.App, key, c.Team.ID, c.User.ID, c.channel()) || c.Trigger == "" {
		return core.Errorf(core.ErrInvalid, "the body is not an interaction of Slack")
	}
	item := newItem(s.Settings.Owner, c.App, key, core.SlackInteraction, body)
	item.User = userID(c.userTeam(), c.User.ID)
	return s.storeItem(ctx, "interaction", item)
}

// maxID is more characters than an id of Slack has.
const maxID = 200

// safeIDs reports whether the ids look like Slack's: they become parts of keys.
func safeIDs(ids ...string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		return len(id) > maxID || strings.ContainsFunc(id, func(r rune) bool { return r < '!' || r > '~' })
	})
}

// Limits of requests of Slack.
const (
	// MaxBody is how large the body of a request may be.
	MaxBody = 4 << 20
	// smallBody is how much of a body is read without a slot: more than nearly all have. A sender
	// without a signature could hold all slots by being slow.
	smallBody = 64 << 10
	// maxBodies is how many larger bodies are read or stored at the same time.
	maxBodies = 32
	// storeTime is less than the 3 s in which Slack wants the acknowledgment.
	storeTime = 2500 * time.Millisecond
	// maxUnsigned is how large the body of an unsigned request may be: ssl_check.
	maxUnsigned = 4 << 10
)

// The paths of requests of Slack.
const (
	EventsPath       = "/slack/events"
	InteractionsPath = "/slack/interactions"
	CommandsPath     = "/slack/commands"
)

// Routes returns what answers Slack, and browsers that install the app by OAuth, by method and path. Without a
// signing secret Slack is reached by Socket Mode.
func (s *Service) Routes() map[string]http.HandlerFunc {
	routes := map[string]http.HandlerFunc{}
	if !s.Settings.SigningSecret.Empty() {
		for _, path := range []string{EventsPath, InteractionsPath, CommandsPath} {
			routes["POST "+path] = s.serveSlack
		}
	}
	if s.Settings.OAuth() {
		routes["GET "+InstallPath], routes["GET "+CallbackPath] = s.serveInstall, s.serveCallback
	}
	return routes
}

// serveSlack answers 200 once the request is stored, or needs not be; 401 for a wrong signature,
// 413 for a body that is too large, 400 for one that is not understood, and 503 when it cannot be
// stored: Slack sends it again.
func (s *Service) serveSlack(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTime)
	defer cancel()
	signed, unsigned := slackapi.NewSecretsVerifier(r.Header, s.Settings.SigningSecret.Reveal())
	limit := int64(MaxBody)
	if unsigned != nil {
		limit = maxUnsigned
	}
	reader := http.MaxBytesReader(w, r.Body, limit)
	body, err := io.ReadAll(io.LimitReader(reader, smallBody))
	if err == nil && len(body) == smallBody {
		select {
		case s.slots <- struct{}{}:
			defer func() { <-s.slots }()
		case <-ctx.Done():
			s.refuse(w, r, http.StatusServiceUnavailable, ctx.Err())
			return
		}
		var rest []byte
		rest, err = io.ReadAll(reader)
		body = append(body, rest...)
	}
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case unsigned != nil && (err != nil || !isSSLCheck(r, body)):
		s.refuse(w, r, http.StatusUnauthorized, unsigned)
	case unsigned != nil:
		w.WriteHeader(http.StatusOK) // nothing of the body counts
	case errors.As(err, &tooLarge):
		s.refuse(w, r, http.StatusRequestEntityTooLarge, err)
	case err != nil:
		s.refuse(w, r, http.StatusBadRequest, err)
	default:
		if isSSLCheck(r, body) {
			w.WriteHeader(http.StatusOK)
			return
		}
		// The signature, and a time that is at most five minutes off this machine's clock, in either direction.
		_, _ = signed.Write(body) // a hash takes everything
		if err := signed.Ensure(); err != nil {
			s.refuse(w, r, http.StatusUnauthorized, err)
			return
		}
		challenge, err := s.storeRequest(ctx, r.URL.Path, body)
		switch {
		case errors.Is(err, core.ErrInvalid):
			s.refuse(w, r, http.StatusBadRequest, err)
		case err != nil:
			s.refuse(w, r, http.StatusServiceUnavailable, err)
		case challenge != "":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"challenge": challenge}) // a client that is gone asks again
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
}

// storeRequest stores the body of a request to the path.
func (s *Service) storeRequest(ctx context.Context, path string, body []byte) (challenge string, err error) {
	if path == EventsPath {
		return s.storeEvent(ctx, body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "the body is not a form")
	}
	if path == CommandsPath {
		return "", s.storeCommand(ctx, slackapi.SlashCommand{
			APIAppID: form.Get("api_app_id"), TeamID: form.Get("team_id"), ChannelID: form.Get("channel_id"), UserID: form.Get("user_id"),
			Text: form.Get("text"), ResponseURL: form.Get("response_url"), TriggerID: form.Get("trigger_id"),
		})
	}
	return "", s.storeInteraction(ctx, []byte(form.Get("payload")))
}

// refuse answers with a status that is an error.
func (s *Service) refuse(w http.ResponseWriter, r *http.Request, status int, cause error) {
	s.Observer.Count(core.CountSlack, 1, "request", outcomeRefused)
	level := slog.LevelWarn
	if status == http.StatusUnauthorized { // anybody may cause it
		level = slog.LevelDebug
	}
	s.Logger.Log(r.Context(), level, "request of Slack refused", "path", r.URL.Path, "status", status, "err", cause)
	if status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	http.Error(w, http.StatusText(status), status)
}

// isSSLCheck reports whether Slack checks the certificate. Such a request is not signed.
func isSSLCheck(r *http.Request, body []byte) bool {
	if len(body) > maxUnsigned {
		return false
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return false
	}
	form, err := url.ParseQuery(string(body))
	return err == nil && form.Get("ssl_check") == "1"
}
