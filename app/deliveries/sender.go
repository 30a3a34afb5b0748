package deliveries

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
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// Limits of a response: of its headers, and of all bytes over the connection.
const (
	maxHeader = 16 << 10
	maxWire   = 256 << 10
)

// SenderOptions configure a Sender. The stores, Time and Logger are required.
type SenderOptions struct {
	Runs         core.RunStore
	Messages     core.MessageStore
	Secret       string        // signs webhooks without their own secret; empty = these are not signed
	AllowPrivate bool          // also allows http and addresses that are not public
	Time         time.Duration // of one request
	Logger       *slog.Logger
	// Roots are the trusted root certificates; nil = the system's.
	Roots *x509.CertPool
	// Lookup resolves host names; nil = the system's resolver.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Sender sends webhooks. Safe for concurrent use.
type Sender struct{ o SenderOptions }

// NewSender returns a Sender.
func NewSender(o SenderOptions) *Sender { return &Sender{o} }

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

// Send sends the webhook once. Its errors are core.DeliveryError, or internal.
func (s *Sender) Send(ctx context.Context, d core.Delivery) error {
	tenant := core.Tenant{Owner: d.Owner}
	run, err := s.o.Runs.Get(ctx, tenant, d.RunID)
	if err != nil {
		return fmt.Errorf("run of a webhook: %w", err)
	}
	r := report{Type: d.Event, Timestamp: d.CreatedAt, Data: runReport{Run: run}}
	if run.AnswerID != "" {
		message, err := s.o.Messages.Get(ctx, tenant, run.SessionID, run.AnswerID)
		switch {
		case err == nil:
			r.Data.Message = &message
		case !errors.Is(err, core.ErrNotFound): // a deleted answer
			return fmt.Errorf("answer of a webhook: %w", err)
		}
	}
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	until := time.Now().Add(s.o.Time)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	target, err := url.Parse(string(d.Target))
	if err != nil || target.Host == "" || target.Scheme != "https" && (target.Scheme != "http" || !s.o.AllowPrivate) {
		return &core.DeliveryError{Reason: "the address is not usable: only https is allowed", Final: true}
	}
	secret := d.Secret
	if secret == "" {
		secret = s.o.Secret
	}
	key, err := core.WebhookKey(secret)
	if err != nil {
		return &core.DeliveryError{Reason: "the secret is not usable: it " + err.Error(), Final: true}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target.String(), bytes.NewReader(body))
	if err != nil {
		return &core.DeliveryError{Reason: "the address is not usable", Final: true}
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "Bobbin")
	req.Header.Set("Webhook-Id", string(d.ID))
	req.Header.Set("Webhook-Timestamp", at)
	if key != nil {
		id := string(d.ID)
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "."))
		mac.Write(body)
		req.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	response, err := s.newClient(until).Do(req)
	if err != nil {
		return s.publicError(ctx, d, err)
	}
	defer response.Body.Close()
	return checkResponse(response)
}

func (s *Sender) newClient(until time.Time) *http.Client {
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

// checkResponse returns nil if the response means success, else a core.DeliveryError.
func checkResponse(response *http.Response) error {
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
		value := response.Header.Get("Retry-After") // seconds or a date
		if n, err := strconv.ParseUint(value, 10, 31); err == nil {
			failed.RetryAfter = time.Duration(n) * time.Second
		} else if at, err := http.ParseTime(value); err == nil {
			failed.RetryAfter = max(time.Until(at), 0)
		}
	}
	return failed
}

// publicError returns the error in words that reveal nothing about the server's network. A
// tenant cannot distinguish a name that does not exist from one that is not public, not even by
// the number of tries; the operator's log can.
func (s *Sender) publicError(ctx context.Context, d core.Delivery, err error) error {
	switch {
	case errors.Is(err, netguard.ErrNotPublic), errors.Is(err, netguard.ErrNoHost):
		s.o.Logger.InfoContext(ctx, "webhook not sent", "delivery_id", d.ID, "run_id", d.RunID, "err", err)
		return &core.DeliveryError{Reason: "the host does not exist, or is not public", Unreached: true}
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return &core.DeliveryError{Reason: "the receiver did not answer in time", Unreached: true}
	default:
		return &core.DeliveryError{Reason: "the connection failed", Unreached: true}
	}
}
