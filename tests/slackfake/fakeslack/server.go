package fakeslack

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The app that every server has.
const (
	appID         = "A0001"
	appName       = "bobbin"
	clientID      = "1.1"
	clientSecret  = "client-secret"
	signingSecret = "signing-secret"
	socketToken   = "xapp-1-A0001-1"
	streamLife    = 5 * time.Minute
)

// Options are the settings of a Server. Zero values are replaced by what Slack does.
type Options struct {
	Addr        string           // where to listen; default: a free port on loopback
	AckTimeout  time.Duration    // for events, commands and interactions; default 3 seconds
	RetryDelays []time.Duration  // before each retry of an event; default 0, 1 minute, 5 minutes
	PageLimit   int              // messages of a thread that the app gets at once; default 999
	Now         func() time.Time // default time.Now
}

// scopes are those of the app's bot.
func scopes() []string {
	return strings.Fields("app_mentions:read assistant:write channels:history channels:read chat:write " +
		"commands files:read groups:history groups:read im:history im:read im:write mpim:history mpim:read users:read users:read.email")
}

func (o *Options) setDefaults() {
	setDefault(&o.Addr, "127.0.0.1:0")
	setDefault(&o.AckTimeout, 3*time.Second)
	setDefault(&o.PageLimit, 999)
	if o.RetryDelays == nil {
		o.RetryDelays = []time.Duration{0, time.Minute, 5 * time.Minute}
	}
	if o.Now == nil {
		o.Now = time.Now
	}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// URLs are the request URLs of the app, and where browsers are sent that do not say where.
// Without one, what would go there is dropped.
type URLs struct{ Events, Interactions, Commands, Redirect string }

// URLsBelow returns the URLs of a Bobbin at the address.
func URLsBelow(base string) URLs {
	base = strings.TrimSuffix(base, "/") + "/slack/"
	return URLs{Events: base + "events", Interactions: base + "interactions", Commands: base + "commands", Redirect: base + "oauth/callback"}
}

// Server is a running fake Slack. Create one with New.
type Server struct {
	URL string // http://host:port

	opts    Options
	mux     *http.ServeMux
	methods map[string]method
	http    *http.Server
	client  *http.Client
	ctx     context.Context //nolint:containedctx // ends the deliveries when the server closes
	cancel  context.CancelFunc
	work    sync.WaitGroup // deliveries and sockets

	mu          sync.Mutex
	changed     chan struct{} // closed at the next change
	version     int           // of the state, for the page
	lastTS      int64         // microseconds
	lastID      int
	urls        URLs
	workspaces  []*Workspace
	tokens      map[string]*token
	codes       map[string]*authCode
	hooks       map[string]*hook
	sockets     []*socket
	tickets     map[string]bool // of Socket Mode, each for one connection
	socketMode  bool            // the app has opened a socket: nothing goes to request URLs
	faults      []*Fault
	eventFaults EventFaults
	heldEvents  []*delivery
	queues      map[string][]*delivery
	pending     map[string]int // deliveries that are not yet done, by channel
	deliveries  []*Delivery
	calls       []Call
	sessions    map[threadKey]string // statuses of the agent sessions
}

// New starts a server. Close ends it.
func New(opts Options) (*Server, error) {
	opts.setDefaults()
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", opts.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the fake Slack: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{
		URL: "http://" + listener.Addr().String(), opts: opts, ctx: ctx, cancel: cancel,
		methods: methodTable(), mux: http.NewServeMux(), changed: make(chan struct{}),
		client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		tokens: map[string]*token{}, codes: map[string]*authCode{}, hooks: map[string]*hook{},
		tickets: map[string]bool{}, queues: map[string][]*delivery{}, pending: map[string]int{}, sessions: map[threadKey]string{},
	}
	s.tokens[socketToken] = &token{value: socketToken, kind: appToken}
	s.addRoutes()
	s.http = &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second}
	s.work.Go(func() { _ = s.http.Serve(listener) })
	return s, nil
}

func (s *Server) addRoutes() {
	s.mux.HandleFunc("POST /api/{method}", s.serveMethod)
	s.mux.HandleFunc("GET /api/{method}", s.serveMethod)
	s.mux.HandleFunc("GET /files-pri/{id}/download/{name}", s.serveDownload)
	s.mux.HandleFunc("POST /hooks/{id}", s.serveHook)
	s.mux.HandleFunc("GET /link", s.serveSocket)
	s.addPage()
}

// ServeHTTP answers one request: of the Web API, of a browser, or of Socket Mode.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// APIURL is the base of the Web API methods, with a slash at its end.
func (s *Server) APIURL() string { return s.URL + "/api/" }

// SetURLs says where the app receives events, interactions and commands.
func (s *Server) SetURLs(urls URLs) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urls = urls
}

// Close ends the server, its sockets and its deliveries.
func (s *Server) Close() error {
	s.cancel()
	s.mu.Lock()
	for _, socket := range s.sockets {
		_ = socket.conn.Close()
	}
	s.mu.Unlock()
	err := s.http.Close()
	s.work.Wait()
	return err
}

// Wait returns when the condition holds, and an error after three minutes and if the context ends before.
// The condition is checked after every change and may call the server's methods.
func (s *Server) Wait(ctx context.Context, condition func() bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, 3*time.Minute, errors.New("not within three minutes"))
	defer cancel()
	for {
		s.mu.Lock()
		changed := s.changed
		s.mu.Unlock()
		if condition() {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.ctx.Done():
			return errors.New("the fake Slack is closed")
		}
	}
}

// WaitDelivered returns when no delivery is under way or waits for a retry.
func (s *Server) WaitDelivered(ctx context.Context) error {
	return s.Wait(ctx, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.pending) == 0
	})
}

// WaitDeliveredFrom is WaitDelivered for the events of one channel of the workspace.
func (w *Workspace) WaitDeliveredFrom(ctx context.Context, channel string) error {
	return w.server.Wait(ctx, func() bool {
		w.server.mu.Lock()
		defer w.server.mu.Unlock()
		return w.server.pending[w.ID+"/"+channel] == 0
	})
}

// notifyWaiters wakes those who wait for a change.
func (s *Server) notifyWaiters() {
	s.version++
	close(s.changed)
	s.changed = make(chan struct{})
}

// newTS returns a timestamp that no other message has.
func (s *Server) newTS() string {
	s.lastTS = max(s.lastTS+1, s.opts.Now().UnixMicro())
	return fmt.Sprintf("%d.%06d", s.lastTS/1e6, s.lastTS%1e6)
}

func (s *Server) newID(prefix string) string {
	s.lastID++
	return fmt.Sprintf("%s%08d", prefix, s.lastID)
}

// Sign returns Slack's signature (X-Slack-Signature) of a body that is sent at the
// timestamp, in seconds since 1970.
func Sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte("v0:" + timestamp + ":"))
	mac.Write(body)
	return "v0=" + hex.EncodeToString(mac.Sum(nil))
}

// signHeader signs by the true time, whatever Options.Now says: apps check it.
func signHeader(header http.Header, secret string, body []byte) {
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	header.Set("X-Slack-Request-Timestamp", timestamp)
	header.Set("X-Slack-Signature", Sign(secret, timestamp, body))
}

// hook is a response_url: the app may answer a command or an interaction there.
type hook struct {
	ws      *Workspace
	channel *Channel
	user    *User
	thread  string
}

func (s *Server) addHook(h *hook) string {
	id := s.newID("hook-")
	s.hooks[id] = h
	return s.URL + "/hooks/" + id
}

// serveHook takes an answer of the app. It takes mu.
func (s *Server) serveHook(w http.ResponseWriter, r *http.Request) {
	a, err := decodeArgs(r)
	if err == nil {
		err = s.useHook(r.PathValue("id"), a)
	}
	s.recordCall("response_url", a, errorCode(err), false)
	if err != nil {
		writeJSON(w, http.StatusNotFound, reply{"ok": false, "error": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, reply{"ok": true})
}

// useHook shows an answer to the user. It takes mu.
func (s *Server) useHook(id string, a args) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hooks[id]
	if h == nil {
		return failure{code: "invalid_url"}
	}
	text, _ := truncateText(a.text("text"))
	if text == "" {
		return failure{code: "no_text"}
	}
	h.ws.ephemerals = append(h.ws.ephemerals, Ephemeral{Channel: h.channel.ID, User: h.user.ID, ThreadTS: h.thread, TS: h.ws.server.newTS(), Text: text})
	h.ws.server.notifyWaiters()
	return nil
}
