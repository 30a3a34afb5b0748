package api

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"bobbin/app/api/auth"
	"bobbin/app/api/handlers"
	"bobbin/app/api/openai"
	"bobbin/app/core"
	"bobbin/app/core/quota"
)

// Options are the parts of a Server; Services, Keys, Auth and Logger are required.
type Options struct {
	Services    handlers.Services
	Keys        keyStore // of idempotent requests
	Auth        *auth.Authenticator
	Checks      []handlers.Check // readiness: database, migrations …
	Build       handlers.Build
	Limits      Limits
	Space       handlers.Space // memory and disk that requests may use; Body follows from Limits
	Origins     []string       // web origins that may read responses (CORS)
	Framing     []string       // web origins whose pages may show the widget
	Logger      *slog.Logger
	OpenAI      openai.API                  // its Services and Streams follow from the others
	Metrics     http.Handler                // answers /metrics; nil = no such route
	OpenMetrics bool                        // they need no key. Else callers need core.CanMetrics: metrics cover all owners, so an ordinary key does not suffice
	Slack       map[string]http.HandlerFunc // what answers Slack, by method and path; it authenticates Slack by a signature of the body
	Observer    core.Observer               // of every request; nil = none
	Ready       <-chan struct{}             // closed when requests are admitted; nil = immediately
	Overloaded  func() bool                 // whether requests that start a run are refused; nil = never
	Work        <-chan struct{}             // closed when work that outlives requests has ended; stopping waits for it too; nil = no such work
}

// Server is the HTTP surface. Safe for concurrent use.
type Server struct {
	Options
	engine  *gin.Engine
	handler http.Handler   // the engine, with compression
	rates   *quota.Buckets // of API keys
	users   *quota.Buckets // of end users
	streams *handlers.StreamLimiter

	requests  sync.RWMutex  // held for reading by each request
	drain     chan struct{} // closed when the server stops
	stopDrain func()
}

// New returns a server that is ready to serve.
func New(opts Options) *Server {
	gin.SetMode(gin.ReleaseMode)
	opts.Observer, opts.Space.Body = core.ObserverOrNone(opts.Observer), opts.Limits.BodyBytes
	opts.Limits.Stream.Observer = opts.Observer
	s := &Server{Options: opts, drain: make(chan struct{})}
	s.rates = quota.NewBuckets(float64(s.Limits.PerSecond), 10*s.Limits.PerSecond)
	s.streams = handlers.NewStreamLimiter(s.Limits.Limits)
	s.users = quota.NewBuckets(float64(s.Limits.UserPerSecond), 10*s.Limits.UserPerSecond)
	s.stopDrain = sync.OnceFunc(func() { close(s.drain); s.streams.Drain() })

	r := gin.New()
	r.HandleMethodNotAllowed = true
	r.RedirectTrailingSlash = false
	r.ForwardedByClientIP = false
	r.UseRawPath = true // %2f is not a slash, and no letter has a second spelling: proxies in front match the raw path
	r.Use(setRequestID, s.observeRequest, s.recoverPanics, setSecurityHeaders, s.setCORSHeaders, s.withErrors(s.admitRequest), s.withErrors(s.limitBody))
	r.NoRoute(s.withErrors(s.noRoute))
	r.NoMethod(s.withErrors(s.noMethod))
	s.registerRoutes(r)
	s.handler = compressed(r)
	s.engine = r
	return s
}

// ServeHTTP answers one request. HEAD is served as GET, and net/http sends only the
// header; not for event streams, which do not end.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodHead && !strings.HasSuffix(r.URL.Path, "/events") {
		get := *r
		get.Method = http.MethodGet
		r = &get
	}
	s.handler.ServeHTTP(w, r)
}

// errStopped is the cause of requests that end because the grace period is over.
var errStopped = &core.Error{Kind: core.ErrUnavailable, Code: "stopping", Message: "the server has stopped"}

// Serve answers requests on the listener until ctx ends, then stops as the package
// comment says. It closes the listener. An orderly stop returns nil, even if some
// requests did not finish.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	// Requests outlive ctx by the grace period.
	base, cancelRequests := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancelRequests(errStopped)
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: s.Limits.ReadHeader,
		IdleTimeout:       s.Limits.Idle,
		// For responses that no handler writes. Every handler sets its own deadline, and the
		// server resets it at the next request only if WriteTimeout is set.
		WriteTimeout:   time.Minute,
		MaxHeaderBytes: s.Limits.HeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return base },
		ErrorLog:       slog.NewLogLogger(s.Logger.Handler(), slog.LevelDebug),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var background sync.WaitGroup
	defer background.Wait()
	backgroundCtx, cancel := context.WithCancel(base)
	defer cancel()
	background.Go(func() {
		_ = core.Every(backgroundCtx, auth.Remembered, func(ctx context.Context) {
			keys := s.streams.Keys()
			if len(keys) == 0 {
				return
			}
			lapsed, err := s.Auth.Lapsed(ctx, keys)
			if err != nil {
				s.Logger.WarnContext(ctx, "keys of open streams not checked", "err", err)
			}
			s.streams.End(lapsed)
		})
	})
	select {
	case err := <-failed:
		s.stopDrain()
		return fmt.Errorf("serve http: %w", err)
	case <-ctx.Done():
	}
	s.drainAndStop(context.WithoutCancel(ctx), server, cancelRequests)
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

// drainAndStop lets requests in progress finish and cancels those that do not. New requests
// get 503 with Retry-After, which says more than a refused connection.
func (s *Server) drainAndStop(ctx context.Context, server *http.Server, cancelRequests context.CancelCauseFunc) {
	s.stopDrain()
	grace, cancel := context.WithTimeout(ctx, s.Limits.Grace)
	defer cancel()
	idle := make(chan struct{})
	go func() { // ends with the last request
		s.requests.Lock()
		close(idle)
	}()
	for _, done := range []<-chan struct{}{idle, s.Work} {
		if done == nil {
			continue
		}
		select {
		case <-done:
		case <-grace.Done():
		}
	}
	if err := server.Shutdown(grace); err == nil {
		return
	}
	s.Logger.WarnContext(ctx, "requests canceled at the end of the grace period")
	cancelRequests(errStopped)
	_ = server.Close() // its only errors concern connections that are closed anyway
}

// Limits bound one request.
type Limits struct {
	handlers.Limits
	BodyBytes       int64 // a message of 1 MiB may be six times as long in JSON
	ImportBytes     int64 // of an import
	FileBytes       int64 // of a file
	FilesPerMessage int
	HeaderBytes     int
	ReadHeader      time.Duration // for the request's header
	ReadBody        time.Duration // for its body
	Idle            time.Duration // of a connection between requests
	Start           time.Duration // a request waits this long for the server to start
	Grace           time.Duration // for requests in progress when the server stops
	PerSecond       int           // requests of one key, with bursts of ten times as many; 0 = no limit
	UserPerSecond   int           // requests of one end user, likewise
}

// DefaultLimits returns the limits that hold without settings.
func DefaultLimits() Limits {
	return Limits{
		BodyBytes: 8 << 20, ImportBytes: 64 << 20, FileBytes: 20 << 20, FilesPerMessage: 8, HeaderBytes: 64 << 10,
		ReadHeader: 10 * time.Second, ReadBody: 30 * time.Second, Idle: 2 * time.Minute,
		Start: 10 * time.Second, Grace: 35 * time.Second, Limits: handlers.Limits{
			Wait: 5 * time.Minute, Streams: 8192, StreamsPerOwner: 4096, StreamsPerUser: 32,
			Stream: handlers.StreamOptions{Heartbeat: 15 * time.Second, WriteTimeout: 10 * time.Second},
		},
	}
}
