package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/api/rate"
	"bobbin/app/core"
)

// Options are the parts of a Server; Services, Auth and Logger are required.
type Options struct {
	Services handlers.Services
	Keys     keyStore // of requests that may come again; nil = Idempotency-Key is for messages only
	Auth     *auth.Authenticator
	Checks   []handlers.Check // of readiness: database, migrations …
	Build    handlers.Build
	Limits   Limits
	Origins  []string // whose pages may read answers (CORS)
	Logger   *slog.Logger
	Purge    handlers.PurgeService   // for the command line; nil = it cannot be asked for
	Metrics  handlers.MetricsOptions // without an Exposition there is no route /metrics
	Observer observer                // is told of every request; nil = nobody is
	Ready    <-chan struct{}         // closed when requests may be let in; nil = at once
	Work     <-chan struct{}         // closed when work that outlives requests has ended: a stop waits for it, too; nil = there is none
}

// Server is the HTTP surface. Safe for concurrent use.
type Server struct {
	engine  *gin.Engine
	auth    *auth.Authenticator
	keys    keyStore
	limits  Limits
	rates   *rate.Buckets // of keys
	users   *rate.Buckets // of end users
	streams *handlers.Streams
	watch   observer
	log     *slog.Logger
	origins []string
	roots   []string // where the paths begin, for who is lost

	ready     <-chan struct{} // closed when requests may be let in
	work      <-chan struct{} // closed when there is none beside the requests
	guests    *guests
	drain     chan struct{} // closed when the server stops
	stopDrain func()
}

// New returns a server that is ready to serve.
func New(opts Options) *Server {
	gin.SetMode(gin.ReleaseMode)
	s := &Server{auth: opts.Auth, origins: opts.Origins, keys: opts.Keys, limits: opts.Limits.withDefaults(), watch: opts.Observer, log: opts.Logger, ready: orClosed(opts.Ready), work: orClosed(opts.Work), guests: newGuests(), drain: make(chan struct{})}
	s.rates = rate.New(float64(s.limits.PerSecond), 10*s.limits.PerSecond)
	s.streams = handlers.NewStreams(s.held())
	s.users = rate.New(float64(s.limits.UserPerSecond), 10*s.limits.UserPerSecond)
	s.stopDrain = sync.OnceFunc(func() { close(s.drain); s.streams.Drain() })

	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	r.ForwardedByClientIP = false
	r.Use(identify, s.observe, s.logAccess, s.recoverPanics, secure, s.cors, s.handle(s.admit), s.handle(s.limitBody))
	r.NoRoute(s.handle(s.noRoute))
	r.NoMethod(s.handle(s.noMethod))
	s.routes(r, opts)
	s.engine, s.roots = r, rootsOf(r.Routes())
	return s
}

// orClosed returns the channel, or one that is closed in the place of none.
func orClosed(c <-chan struct{}) <-chan struct{} {
	if c != nil {
		return c
	}
	closed := make(chan struct{})
	close(closed)
	return closed
}

// rootsOf returns the beginnings of the routes, each once.
func rootsOf(routes gin.RoutesInfo) []string {
	var roots []string
	for _, route := range routes {
		segments := strings.Split(route.Path, "/") // "", "api", "v1", "sessions", …
		roots = append(roots, strings.Join(segments[:min(4, len(segments))], "/"))
	}
	slices.Sort(roots)
	return slices.Compact(roots)
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.engine.ServeHTTP(w, r) }

// errStopped is why a request is cut off at the end of the grace period.
var errStopped = core.Errorf(core.ErrUnavailable, "the server has stopped")

// Serve answers requests on the listener until ctx ends, then stops as the
// package comment says. It closes the listener. A stop in order returns nil; it
// does not matter whether all requests were finished.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Requests outlive ctx by the grace period.
	base, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(errStopped)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.limits.ReadHeader,
		IdleTimeout:       s.limits.Idle,
		// For what no handler writes. Every handler sets a deadline of its own, and the
		// server takes that away at the next request only if it has one itself.
		WriteTimeout:   time.Minute,
		MaxHeaderBytes: s.limits.HeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return base },
		ErrorLog:       slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var watching sync.WaitGroup
	defer watching.Wait()
	watched, unwatch := context.WithCancel(base)
	defer unwatch()
	watching.Go(func() { s.watchKeys(watched) })
	select {
	case err := <-failed:
		s.stopDrain()
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	s.stop(context.WithoutCancel(ctx), server, cut)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// watchKeys ends the streams of keys that open nothing any more, which whoever comes
// anew is told within the same time, until ctx ends.
func (s *Server) watchKeys(ctx context.Context) {
	tick := time.NewTicker(auth.Remembered)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		keys := s.streams.Keys()
		if len(keys) == 0 {
			continue
		}
		lapsed, err := s.auth.Lapsed(ctx, keys)
		if err != nil {
			s.log.WarnContext(ctx, "keys of open streams not looked up", "err", err)
		}
		s.streams.End(lapsed)
	}
}

// stop lets the requests in hand finish, and cuts off those that do not. Who comes
// meanwhile is told to come again: a connection that is refused tells less.
func (s *Server) stop(ctx context.Context, server *http.Server, cut context.CancelCauseFunc) {
	s.stopDrain()
	grace, cancel := context.WithTimeout(ctx, s.limits.Grace)
	defer cancel()
	for _, over := range []<-chan struct{}{s.guests.shut(), s.work} {
		select {
		case <-over:
		case <-grace.Done():
		}
	}
	if err := server.Shutdown(grace); err == nil {
		return
	}
	s.log.WarnContext(ctx, "requests cut off at the end of the grace period")
	cut(errStopped)
	_ = server.Close() // its only errors are of connections that are closed anyway
}
