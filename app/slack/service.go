package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	slackapi "github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"
	"golang.org/x/sync/errgroup"

	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/netguard"
	"bobbin/app/db/repositories"
)

// apiTime bounds one call of Slack's Web API.
const apiTime = 20 * time.Second

// Options configure a Service. All are required but Observer.
type Options struct {
	Settings config.Slack
	Clients  *Clients
	Chat     *chat.Service
	Transfer *transfer.Service
	Files    *blobs.Service
	Inbox    *repositories.SlackInbox
	Threads  *repositories.SlackThreads
	Posts    *repositories.SlackPosts
	Sessions core.SessionStore
	Runs     core.RunStore
	Worker   string // names this process in leases
	Observer core.Observer
	Logger   *slog.Logger
}

// Service takes in what Slack sends. Safe for concurrent use.
type Service struct {
	Options

	http    *http.Client  // without redirects to other hosts
	apiHost string        // of a Web API that is not Slack's own; empty = it is
	slots   chan struct{} // one for each body that is not small
	wake    chan struct{}
}

// workspace handles what one workspace of Slack sent, as the app's bot there.
type workspace struct {
	*Service

	api  *client
	team string
}

// openWorkspace returns the workspace; errNotInstalled if there is no token for it.
func (s *Service) openWorkspace(ctx context.Context, team string) (*workspace, error) {
	api, err := s.Clients.of(ctx, team)
	return &workspace{s, api, team}, err
}

// New returns a Service.
func New(o Options) *Service {
	o.Observer = core.ObserverOrNone(o.Observer)
	s := &Service{Options: o, slots: make(chan struct{}, maxBodies), wake: make(chan struct{}, workers)}
	if u, err := url.Parse(o.Settings.APIURL); err == nil && !isSlackHost(u.Hostname()) {
		s.apiHost = u.Host
	}
	dial := (&net.Dialer{Timeout: apiTime}).DialContext
	if s.apiHost == "" {
		dial = netguard.Dialer{}.Dial
	}
	s.http = &http.Client{
		Timeout:   fileTime,
		Transport: &http.Transport{DialContext: dial, TLSHandshakeTimeout: apiTime, ResponseHeaderTimeout: fileTime, MaxResponseHeaderBytes: 64 << 10},
		CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > maxRedirects || !s.trustedURL(r.URL) {
				return core.Errorf(core.ErrUnprocessable, "Slack refers to another host")
			}
			r.Header.Del("Authorization")
			return nil
		},
	}
	return s
}

// Run handles what arrives until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		group.Go(func() error {
			if core.Sleep(ctx, time.Duration(i)*workerTime) != nil {
				return nil
			}
			return core.Repeat(ctx, s.wake, func(ctx context.Context) time.Duration {
				for s.handleNext(ctx) {
				}
				return pollTime
			})
		})
	}
	group.Go(func() error {
		s.checkToken(ctx)
		return nil
	})
	group.Go(func() error {
		return core.Every(ctx, sweepTime, func(ctx context.Context) {
			if err := s.Inbox.Sweep(ctx, core.SlackMemory); err != nil && ctx.Err() == nil {
				s.Logger.WarnContext(ctx, "old items of Slack not removed", "err", err)
			}
		})
	})
	if s.Settings.AppToken.Empty() {
		return group.Wait()
	}
	group.Go(func() error {
		s.readSockets(ctx)
		return nil
	})
	return group.Wait()
}

// checkToken says in the log if slack.bot_token does not work: before the first message, who else would?
func (s *Service) checkToken(ctx context.Context) {
	if s.Settings.OAuth() {
		return
	}
	_, err := s.Clients.of(ctx, "")
	switch {
	case isTokenRefused(err):
		s.Logger.ErrorContext(ctx, "slack.bot_token is refused: no message is answered, and nothing is posted; see bobbin doctor", "err", err)
	case err != nil && !errors.Is(err, errNotInstalled) && ctx.Err() == nil: // it names no workspace
		s.Logger.WarnContext(ctx, "no connection to Slack", "err", err)
	}
}

// tenant is the scope in which Slack acts.
func (s *Service) tenant() core.Tenant { return core.Tenant{Owner: s.Settings.Owner} }

// How a lost socket is opened again.
const (
	minReconnect = time.Second
	maxReconnect = time.Minute
)

// readSockets takes in what Slack sends over sockets that Bobbin opens, until ctx ends.
func (s *Service) readSockets(ctx context.Context) {
	for wait := minReconnect; ; wait = min(2*wait, maxReconnect) {
		began := time.Now()
		err := s.readSocket(ctx)
		if ctx.Err() != nil {
			return
		}
		if time.Since(began) > maxReconnect {
			wait = minReconnect
		}
		if isTokenRefused(err) {
			s.Logger.ErrorContext(ctx, "slack.app_token is refused: nothing that Slack sends arrives, and no message is answered; see bobbin doctor", "wait", wait, "err", err)
		} else {
			s.Logger.WarnContext(ctx, "socket of Slack lost, connecting again", "wait", wait, "err", err)
		}
		_ = core.Sleep(ctx, wait)
	}
}

// readSocket reads from connections until one cannot be opened.
func (s *Service) readSocket(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	client := socketmode.New(newClient(s.Settings, "").Client, socketmode.OptionLog(log.New(io.Discard, "", 0)))
	ended := make(chan error, 1)
	go func() { ended <- client.RunContext(ctx) }()
	defer func() { // closed by RunContext, which ends with ctx
		cancel()
		if ended != nil {
			<-ended //nolint:errcheck // it was canceled
		}
	}()
	for {
		select {
		case e := <-client.Events:
			s.receive(ctx, client, e)
		case err := <-ended:
			ended = nil
			return err
		}
	}
}

// receive stores what the socket brought, and acknowledges it. What is not stored is not
// acknowledged: Slack sends an event again.
func (s *Service) receive(ctx context.Context, client *socketmode.Client, e socketmode.Event) {
	request := e.Request
	if bad, ok := e.Data.(*socketmode.ErrorBadMessage); ok { // the library does not know every event
		request = new(socketmode.Request)
		if json.Unmarshal(bad.Message, request) != nil {
			return
		}
	}
	if request == nil || request.EnvelopeID == "" {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, storeTime)
	defer cancel()
	var err error
	switch request.Type {
	case socketmode.RequestTypeEventsAPI:
		_, err = s.storeEvent(ctx, request.Payload)
	case socketmode.RequestTypeInteractive:
		err = s.storeInteraction(ctx, request.Payload)
	case socketmode.RequestTypeSlashCommands:
		var c slackapi.SlashCommand
		if json.Unmarshal(request.Payload, &c) == nil { // else it is none
			err = s.storeCommand(ctx, c)
		}
	}
	if err != nil && !errors.Is(err, core.ErrInvalid) {
		s.Logger.WarnContext(ctx, "what Slack sent is not stored", "type", request.Type, "err", err)
		return
	}
	if err := client.AckCtx(ctx, request.EnvelopeID, nil); err != nil {
		s.Logger.DebugContext(ctx, "not acknowledged to Slack, which sends it again", "err", err)
	}
}

// How items are handled.
const (
	workers    = 8
	workerTime = 500 * time.Millisecond // between the starts of two workers: after a restart acknowledgments come first
	pollTime   = 2 * time.Second        // for items whose wake-up was lost, and those that wait
	handleTime = 100 * time.Second
	minRetry   = time.Second
	maxRetry   = time.Minute
	maxAge     = time.Hour // an item that fails is given up then; one that waits for runs never
	sweepTime  = time.Hour
)

// handleNext handles an item that is due, and reports whether there was one.
func (s *Service) handleNext(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	item, err := s.Inbox.Claim(ctx, s.Worker)
	if err != nil {
		if !errors.Is(err, core.ErrNotFound) && ctx.Err() == nil {
			s.Logger.WarnContext(ctx, "items of Slack not claimed", "err", err)
		}
		return false
	}
	item, err = s.handleItem(ctx, item)
	if err = s.settle(ctx, item, err); err != nil && !errors.Is(err, core.ErrStale) {
		s.Logger.WarnContext(ctx, "item of Slack not settled; its lease will lapse", "item", item.ID, "err", err)
	}
	return true
}

// handleItem handles an item. It returns it with the session that it went to, and its user.
func (s *Service) handleItem(ctx context.Context, item core.SlackItem) (_ core.SlackItem, err error) {
	ctx, cancel := context.WithTimeout(ctx, handleTime)
	defer cancel()
	defer func() { // one item must not end the process
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	defer func() {
		if errors.Is(err, errNotInstalled) {
			s.Observer.Count(core.CountSlack, 1, string(item.Kind), outcomeUnknown)
			err = nil
		}
	}()
	var e envelope
	var command slackapi.SlashCommand
	var clicked interaction
	switch item.Kind {
	case core.SlackOAuthState:
		return item, nil
	case core.SlackMessage, core.SlackEvent:
		if err = json.Unmarshal(item.Payload, &e); err == nil {
			return s.handleEvent(ctx, item, e)
		}
	case core.SlackCommand:
		err = json.Unmarshal(item.Payload, &command)
	default:
		err = json.Unmarshal(item.Payload, &clicked)
	}
	if err != nil {
		return item, &core.Error{Kind: core.ErrInvalid, Message: err.Error(), Err: err} // the next attempt would fail as well
	}
	w, err := s.openWorkspace(ctx, cmp.Or(command.TeamID, clicked.Team.ID))
	switch {
	case err != nil:
		return item, err
	case item.Kind == core.SlackCommand:
		return item, w.handleCommand(ctx, command)
	default:
		return item, w.handleInteraction(ctx, clicked)
	}
}

// settle ends the lease of an item: it is done, or due again later.
func (s *Service) settle(ctx context.Context, item core.SlackItem, err error) error {
	stopping := ctx.Err() != nil
	ctx = context.WithoutCancel(ctx)
	item.Error = ""
	if err == nil {
		return s.Inbox.Finish(ctx, item)
	}
	if stopping {
		return s.Inbox.Retry(ctx, item, 0)
	}
	item.Error = core.Clip(err.Error(), 300)
	wait, giveUp := retryAfter(err, item)
	if !giveUp {
		level := slog.LevelDebug
		if isTokenRefused(err) && item.Attempts == 1 { // nobody gets an answer
			level = slog.LevelError
		}
		s.Logger.Log(ctx, level, "item of Slack waits", "item", item.ID, "attempt", item.Attempts, "wait", wait, "err", err)
		return s.Inbox.Retry(ctx, item, wait)
	}
	s.Logger.LogAttrs(ctx, slog.LevelError, "item of Slack given up",
		slog.String("item", string(item.ID)), slog.String("kind", string(item.Kind)), slog.Int("attempts", item.Attempts), slog.Any("err", err))
	return s.Inbox.Finish(ctx, item)
}

// retryAfter returns when an item is due again after an error, or that it is given up.
func retryAfter(err error, item core.SlackItem) (wait time.Duration, giveUp bool) {
	age := time.Since(item.CreatedAt)
	var later *laterError
	var limited *slackapi.RateLimitedError
	switch {
	case errors.As(err, &later) && age > maxAge:
		return maxRetry, false
	case errors.As(err, &later):
		return later.after, false
	case errors.As(err, &limited):
		return max(limited.RetryAfter, minRetry), age > maxAge
	case isFinal(err):
		return 0, true
	}
	return min(minRetry<<min(item.Attempts-1, 6), maxRetry), age > maxAge
}

// isFinal reports whether the same item fails again however often it is tried.
func isFinal(err error) bool {
	if core.IsSessionBusy(err) || errors.Is(err, core.ErrNoDatabase) {
		return false
	}
	for _, kind := range []error{
		core.ErrInvalid, core.ErrForbidden, core.ErrNotFound, core.ErrConflict, core.ErrTooLarge, core.ErrUnprocessable, core.ErrRateLimited, core.ErrContextFloor,
	} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
