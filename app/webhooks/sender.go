package webhooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// Bounds of an answer: of its headers, and of all that comes over the connection.
const (
	maxHeader = 16 << 10
	maxWire   = 256 << 10
)

// runStore reads runs.
type runStore interface {
	Get(ctx context.Context, scope core.Scope, id core.RunID) (core.Run, error)
}

// messageStore reads messages.
type messageStore interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
}

// Options are what a Sender is made of. The stores and Time are required.
type Options struct {
	Runs         runStore
	Messages     messageStore
	Secret       string        // signs where the webhook has none of its own; empty = it is not signed then
	AllowPrivate bool          // also http, and addresses that are not public
	Time         time.Duration // of one request
	// Roots are whose certificates are believed; nil = the system's.
	Roots *x509.CertPool
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Sender sends webhooks. Safe for concurrent use.
type Sender struct{ o Options }

// New returns a Sender.
func New(o Options) *Sender { return &Sender{o} }

// report is the body of a webhook.
type report struct {
	Type      core.EventType `json:"type"`
	Timestamp time.Time      `json:"timestamp"` // when it happened
	Data      runReport      `json:"data"`
}

type runReport struct {
	Run     core.Run      `json:"run"`
	Message *core.Message `json:"message"` // the answer; null = there is none
}

// Send tells the receiver once. Its errors are core.DeliveryError, or internal.
func (s *Sender) Send(ctx context.Context, d core.Delivery) error {
	body, err := s.body(ctx, d)
	if err != nil {
		return err
	}
	until := time.Now().Add(s.o.Time)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	req, err := s.request(ctx, d, body)
	if err != nil {
		return err
	}
	response, err := s.client(until).Do(req)
	if err != nil {
		return explain(ctx, err)
	}
	defer response.Body.Close()
	return judge(response)
}

// body is what is told.
func (s *Sender) body(ctx context.Context, d core.Delivery) ([]byte, error) {
	scope := core.Scope{Owner: d.Owner}
	run, err := s.o.Runs.Get(ctx, scope, d.RunID)
	if err != nil {
		return nil, fmt.Errorf("run of a webhook: %w", err)
	}
	r := report{Type: d.Event, Timestamp: d.CreatedAt, Data: runReport{Run: run}}
	if run.AnswerID != "" {
		message, err := s.o.Messages.Get(ctx, scope, run.SessionID, run.AnswerID)
		switch {
		case err == nil:
			r.Data.Message = &message
		case !errors.Is(err, core.ErrNotFound): // that is a deleted one
			return nil, fmt.Errorf("answer of a webhook: %w", err)
		}
	}
	return json.Marshal(r)
}

// request is the signed request.
func (s *Sender) request(ctx context.Context, d core.Delivery, body []byte) (*http.Request, error) {
	target, err := url.Parse(string(d.Target))
	if err != nil || target.Host == "" || target.Scheme != "https" && (target.Scheme != "http" || !s.o.AllowPrivate) {
		return nil, &core.DeliveryError{Reason: "the address cannot be used: only https", Final: true}
	}
	secret := d.Secret
	if secret == "" {
		secret = s.o.Secret
	}
	key, err := core.WebhookKey(secret)
	if err != nil {
		return nil, &core.DeliveryError{Reason: "the secret cannot be used: it " + err.Error(), Final: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return nil, &core.DeliveryError{Reason: "the address cannot be used", Final: true}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Bobbin")
	req.Header.Set("Webhook-Id", string(d.ID))
	req.Header.Set("Webhook-Timestamp", at)
	if key != nil {
		req.Header.Set("Webhook-Signature", sign(key, string(d.ID), at, body))
	}
	return req, nil
}

// sign returns the signature of Standard Webhooks, version 1.
func sign(key []byte, id, at string, body []byte) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + at + "."))
	mac.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// client makes the connection of one request.
func (s *Sender) client(until time.Time) *http.Client {
	d := netguard.Dialer{Until: until, Bytes: maxWire, Lookup: s.o.Lookup}
	if s.o.AllowPrivate {
		d.Allow = func(netip.Addr) error { return nil }
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext: d.Dial, DisableKeepAlives: true, MaxResponseHeaderBytes: maxHeader,
			TLSClientConfig: &tls.Config{RootCAs: s.o.Roots, MinVersion: tls.VersionTLS12},
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// judge says what an answer means.
func judge(response *http.Response) error {
	code := response.StatusCode
	failed := &core.DeliveryError{Reason: fmt.Sprintf("the receiver answered with status %d %s", code, http.StatusText(code))}
	switch {
	case code >= 200 && code < 300:
		return nil
	case code >= 300 && code < 400:
		failed.Reason += "; redirects are not followed"
	case code == http.StatusGone:
		failed.Final = true
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		failed.RetryAfter = retryAfter(response.Header.Get("Retry-After"))
	}
	return failed
}

// retryAfter reads the header, which is seconds or a date; 0 = it says nothing.
func retryAfter(value string) time.Duration {
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(time.Until(at), 0)
	}
	return 0
}

// explain returns an error of the exchange in words that tell nothing of the network
// here.
func explain(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, netguard.ErrNotPublic):
		return &core.DeliveryError{Reason: "the address is not public", Final: true}
	case errors.Is(err, netguard.ErrNoHost):
		return &core.DeliveryError{Reason: "the host does not exist", Unreached: true}
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &core.DeliveryError{Reason: "the receiver did not answer in time", Unreached: true}
	default:
		return &core.DeliveryError{Reason: "the connection failed", Unreached: true}
	}
}
