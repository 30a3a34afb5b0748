package slack

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/transfer"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/netguard"
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
	Inbox    core.SlackInboxStore
	Threads  core.SlackThreadStore
	Posts    core.SlackPostStore
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
	names   *nameCache
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
	s.names = &nameCache{known: map[string]knownName{}}
	s.intake = &Intake{inbox: o.Inbox, echoes: make(chan core.SlackPost, maxEchoes), owner: o.Settings.Owner, observer: o.Observer, wake: s.wakeWorker}
	return s
}

// Handler answers requests of Slack; nil without a signing secret.
func (s *Service) Handler() http.Handler {
	if s.Settings.SigningSecret.Empty() {
		return nil // Slack is reached by Socket Mode
	}
	return &Handler{intake: s.intake, verifier: verifier{s.Settings.SigningSecret.Reveal()}, slots: make(chan struct{}, maxBodies), observer: s.Observer, log: s.Logger}
}

// Run handles what arrives until ctx ends.
func (s *Service) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i := range workers {
		group.Go(func() error {
			if sleep(ctx, time.Duration(i)*workerTime) != nil {
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
	group.Go(func() error { return core.Every(ctx, sweepTime, s.sweepItems) })
	group.Go(func() error {
		s.confirmLoop(ctx)
		return nil
	})
	if !s.Settings.AppToken.Empty() {
		group.Go(func() error {
			s.socketLoop(ctx)
			return nil
		})
	}
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

// wakeWorker lets a worker look for work immediately.
func (s *Service) wakeWorker() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
