package deliveries_test

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/deliveries"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// The secret and the signature of the example in the specification of Standard
// Webhooks; verify is checked by it.
const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// books hold one run and its answer.
type books struct {
	run     core.Run
	answer  core.Message
	deleted bool
	broken  error
}

func newBooks() *books {
	answer := core.Message{ID: core.NewID[core.MessageID](), Role: core.RoleAssistant, Content: "Forty-two."}
	return &books{answer: answer, run: core.Run{
		ID: core.NewID[core.RunID](), SessionID: core.NewID[core.SessionID](), Owner: "ann", Status: core.RunSucceeded, AnswerID: answer.ID,
		Webhook: &core.Webhook{URL: "https://hooks.example/?token=hush", Secret: secret},
	}}
}

type runs struct {
	core.RunStore
	*books
}

func (b runs) Get(_ context.Context, tenant core.Tenant, id core.RunID) (core.Run, error) {
	if tenant.Owner != b.run.Owner || id != b.run.ID {
		return core.Run{}, core.ErrNotFound
	}
	return b.run, b.broken
}

type messages struct {
	core.MessageStore
	*books
}

func (b messages) Get(_ context.Context, _ core.Tenant, _ core.SessionID, _ core.MessageID) (core.Message, error) {
	if b.deleted {
		return core.Message{}, core.Errorf(core.ErrNotFound, "deleted")
	}
	return b.answer, b.broken
}

// got is a request as it came.
type got struct {
	header http.Header
	body   []byte
}

// receiver is a program that receives webhooks by HTTPS, under any name.
type receiver struct {
	*httptest.Server
	books *books

	mu   sync.Mutex
	seen []got
}

func newReceiver(t *testing.T, handler http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{books: newBooks()}
	r.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body := make([]byte, q.ContentLength)
		_, _ = q.Body.Read(body)
		r.mu.Lock()
		r.seen = append(r.seen, got{q.Header, body})
		r.mu.Unlock()
		handler(w, q)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) options() deliveries.SenderOptions {
	roots := x509.NewCertPool()
	roots.AddCert(r.Certificate())
	return deliveries.SenderOptions{
		Runs: runs{books: r.books}, Messages: messages{books: r.books}, AllowPrivate: true, Time: 2 * time.Second, Logger: slog.New(slog.DiscardHandler), Roots: roots,
		Lookup: func(context.Context, string) ([]netip.Addr, error) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		},
	}
}

// delivery is one to the receiver under that name.
func (r *receiver) delivery(t *testing.T, host string) core.Delivery {
	t.Helper()
	u := must.Get(url.Parse(r.URL))(t)
	return core.Delivery{
		ID: core.NewID[core.DeliveryID](), Owner: "ann", RunID: r.books.run.ID, Event: core.EventRunSucceeded, CreatedAt: core.Now(),
		Target: core.Target("https://" + host + ":" + u.Port() + "/hook"), Secret: secret,
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// A webhook whose answer was deleted says so; e2e.TestWebhooks has one with its answer.
func TestSendWithoutAnswer(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusNoContent))
	r.books.deleted = true
	if err := deliveries.NewSender(r.options()).Send(t.Context(), r.delivery(t, "example.com")); err != nil || !strings.Contains(string(r.seen[0].body), `"message":null`) {
		t.Errorf("got %v, %s", err, r.seen[0].body)
	}
}

// Without a secret of its own a webhook is signed with that of the settings, and not
// at all without one.
func TestSecrets(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	d, o := r.delivery(t, "example.com"), r.options()
	d.Secret = ""
	if err := deliveries.NewSender(o).Send(t.Context(), d); err != nil || r.seen[0].header.Get("webhook-signature") != "" {
		t.Errorf("without: %v, %v", err, r.seen[0].header)
	}
	o.Secret = "whsec_" + strings.Repeat("QUJD", 9)
	must.Do(t, deliveries.NewSender(o).Send(t.Context(), d))
	verify(t, o.Secret, r.seen[1])
	d.Secret = "plain"
	wantFailure(t, deliveries.NewSender(o).Send(t.Context(), d), "the secret is not usable", true)
}

func wantFailure(t *testing.T, err error, reason string, final bool) (retryAfter time.Duration) {
	t.Helper()
	var failed *core.DeliveryError
	must.True(t, errors.As(err, &failed) && strings.Contains(failed.Reason, reason) && failed.Final == final, "got %+v, want %q, final: %t", err, reason, final)
	return failed.RetryAfter
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	var code atomic.Int64
	r := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "120")
		w.Header().Set("Location", "https://example.com/elsewhere")
		w.WriteHeader(int(code.Load()))
	})
	sender := deliveries.NewSender(r.options())
	for _, tt := range []struct {
		code  int
		final bool
		after time.Duration
	}{
		{500, false, 0}, {404, false, 0}, {410, true, 0}, {429, false, 2 * time.Minute}, {503, false, 2 * time.Minute}, {302, false, 0}, {307, false, 0},
	} {
		code.Store(int64(tt.code))
		after := wantFailure(t, sender.Send(t.Context(), r.delivery(t, "example.com")), fmt.Sprintf("status %d", tt.code), tt.final)
		compare.Equal(t, fmt.Sprintf("%d: retry after", tt.code), tt.after, after)
	}
	compare.Equal(t, "requests: want no redirect is followed", 7, len(r.seen))
}

// unreachable is what tenants see of hosts that do not exist and of those that are not public.
const unreachable = "the host does not exist, or is not public"

// Of the network that Bobbin runs in a tenant learns nothing: a name that does not exist
// and one that is not public give the same error, down to whether it is tried again.
func TestInternalNamesAreNotTold(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	o := r.options()
	o.AllowPrivate = false
	o.Lookup = func(_ context.Context, host string) ([]netip.Addr, error) {
		if host == "internal.example.com" {
			return []netip.Addr{netip.MustParseAddr("10.0.0.1")}, nil
		}
		return nil, errors.New("no such host")
	}
	var got []core.DeliveryError
	for _, host := range []string{"internal.example.com", "nothing.example.com"} {
		var failed *core.DeliveryError
		if err := deliveries.NewSender(o).Send(t.Context(), r.delivery(t, host)); !errors.As(err, &failed) {
			t.Fatalf("%s: got %v", host, err)
		}
		got = append(got, *failed)
	}
	compare.Equal(t, "an internal name: want the words for no name", got[1], got[0])
}

// What a name leads to is looked at when it is connected to: a private address gets
// nothing, whatever it was a moment ago.
func TestPrivateAddresses(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	o := r.options()
	o.AllowPrivate = false
	rebinding := 0
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) {
		rebinding++
		return []netip.Addr{netip.MustParseAddr([]string{"127.0.0.1", "10.0.0.1", "169.254.169.254"}[rebinding%3])}, nil
	}
	var log bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	sender := deliveries.NewSender(o)
	for range 3 {
		wantFailure(t, sender.Send(t.Context(), r.delivery(t, "example.com")), unreachable, false)
	}
	wantFailure(t, sender.Send(t.Context(), r.delivery(t, "127.0.0.1")), unreachable, false)
	got := strings.Count(log.String(), "the address is not public")
	compare.True(t, got == 4, "the log tells the reason %d times, want 4: %s", got, &log)
	plain := r.delivery(t, "example.com")
	plain.Target = "http://example.com/"
	wantFailure(t, sender.Send(t.Context(), plain), "only https", true)
	compare.Equal(t, "a private address: requests", 0, len(r.seen))
}

// A receiver that is slow, away or endless does not hold the sender up.
func TestFaultyReceivers(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	defer close(release)
	silent := newReceiver(t, func(http.ResponseWriter, *http.Request) { <-release })
	o := silent.options()
	o.Time = 100 * time.Millisecond
	wantFailure(t, deliveries.NewSender(o).Send(t.Context(), silent.delivery(t, "example.com")), "in time", false)

	// Nothing is read of a body, so that one without end is none.
	endless := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-release
	})
	compare.Error(t, "an answer that goes on", nil, deliveries.NewSender(endless.options()).Send(t.Context(), endless.delivery(t, "example.com")))

	huge := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) })
	wantFailure(t, deliveries.NewSender(huge.options()).Send(t.Context(), huge.delivery(t, "example.com")), "connection failed", false)

	away := newReceiver(t, status(http.StatusOK))
	away.Close()
	wantFailure(t, deliveries.NewSender(away.options()).Send(t.Context(), away.delivery(t, "example.com")), "connection failed", false)

	o = away.options()
	o.Lookup = func(context.Context, string) ([]netip.Addr, error) { return nil, errors.New("no such host") }
	wantFailure(t, deliveries.NewSender(o).Send(t.Context(), away.delivery(t, "example.com")), unreachable, false)

	o = endless.options()
	o.Roots = x509.NewCertPool() // a certificate of nobody we know
	wantFailure(t, deliveries.NewSender(o).Send(t.Context(), endless.delivery(t, "example.com")), "connection failed", false)
}

// What cannot be read here is a fault of ours, and no answer of the receiver.
func TestFaultsOfOurs(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, status(http.StatusOK))
	r.books.broken = errors.New("the database is gone")
	var failed *core.DeliveryError
	if err := deliveries.NewSender(r.options()).Send(t.Context(), r.delivery(t, "example.com")); err == nil || errors.As(err, &failed) {
		t.Errorf("got %v, want an internal error", err)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	r.books.broken = nil
	compare.Error(t, "broken off", context.Canceled, deliveries.NewSender(r.options()).Send(stopped, r.delivery(t, "example.com")))
}

// signature computes a signature from the words of the specification, without
// anything of the sender: a receiver's side of its own.
func signature(secret string, header http.Header, body []byte) string {
	raw, err := base64.StdEncoding.DecodeString(strings.Split(secret, "_")[1])
	if err != nil {
		return err.Error()
	}
	signed := strings.Join([]string{header.Get("webhook-id"), header.Get("webhook-timestamp"), string(body)}, ".")
	mac := hmac.New(sha256.New, raw)
	mac.Write([]byte(signed))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// verify checks a request as a receiver does.
func verify(t *testing.T, secret string, r got) {
	t.Helper()
	version, sum, _ := strings.Cut(r.header.Get("webhook-signature"), ",")
	want := signature(secret, r.header, r.body)
	compare.Equal(t, "signature: want v1", []any{"v1", want}, []any{version, sum})
	at, err := strconv.ParseInt(r.header.Get("webhook-timestamp"), 10, 64)
	if err != nil || time.Since(time.Unix(at, 0)).Abs() > 5*time.Minute {
		t.Errorf("timestamp: got %q", r.header.Get("webhook-timestamp"))
	}
}

// The example of the specification of Standard Webhooks.
func TestVerifierKnowsTheExample(t *testing.T) {
	t.Parallel()
	header := http.Header{}
	header.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	header.Set("webhook-timestamp", "1614265330")
	const want = "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	compare.Equal(t, `signature(secret, header, []byte('{"test": 2432232314}'))`, want, signature(secret, header, []byte(`{"test": 2432232314}`)))
}
