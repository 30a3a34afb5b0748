package slack

import (
	"context"
	"encoding/json"
	"errors"
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

	http    *http.Client // without redirects to other hosts
	apiHost string       // of a Web API that is not Slack's own; empty = it is
	intake  *Intake
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
	s := &Service{Options: o, wake: make(chan struct{}, workers)}
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
	s.intake = &Intake{inbox: o.Inbox, posts: o.Posts, owner: o.Settings.Owner, observer: o.Observer, wake: func() { core.Signal(s.wake) }}
	return s
}

// Handler answers requests of Slack; nil without a signing secret.
func (s *Service) Handler() http.Handler {
	if s.Settings.SigningSecret.Empty() {
		return nil // Slack is reached by Socket Mode
	}
	return &Handler{intake: s.intake, secret: s.Settings.SigningSecret.Reveal(), slots: make(chan struct{}, maxBodies), observer: s.Observer, log: s.Logger}
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
		_, err = s.intake.Event(ctx, request.Payload)
	case socketmode.RequestTypeInteractive:
		err = s.intake.Interaction(ctx, request.Payload)
	case socketmode.RequestTypeSlashCommands:
		var c slackapi.SlashCommand
		if json.Unmarshal(request.Payload, &c) == nil { // else it is none
			err = s.intake.storeCommand(ctx, c)
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
