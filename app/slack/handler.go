package slack

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/url"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

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

// Handler answers requests of Slack: it verifies and stores them. Safe for concurrent use.
type Handler struct {
	intake   *Intake
	secret   string        // the signing secret of the app
	slots    chan struct{} // one for each body that is not small
	observer core.Observer
	log      *slog.Logger
}

// ServeHTTP answers 200 once the request is stored, or needs not be; 401 for a wrong signature,
// 413 for a body that is too large, 400 for one that is not understood, and 503 when it cannot be
// stored: Slack sends it again.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), storeTime)
	defer cancel()
	signed, unsigned := slackapi.NewSecretsVerifier(r.Header, h.secret)
	limit := int64(MaxBody)
	if unsigned != nil {
		limit = maxUnsigned
	}
	reader := http.MaxBytesReader(w, r.Body, limit)
	body, err := io.ReadAll(io.LimitReader(reader, smallBody))
	if err == nil && len(body) == smallBody {
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		case <-ctx.Done():
			h.refuse(w, r, http.StatusServiceUnavailable, ctx.Err())
			return
		}
		var rest []byte
		rest, err = io.ReadAll(reader)
		body = append(body, rest...)
	}
	switch tooLarge := (*http.MaxBytesError)(nil); {
	case unsigned != nil && (err != nil || !isSSLCheck(r, body)):
		h.refuse(w, r, http.StatusUnauthorized, unsigned)
	case unsigned != nil:
		w.WriteHeader(http.StatusOK) // nothing of the body counts
	case errors.As(err, &tooLarge):
		h.refuse(w, r, http.StatusRequestEntityTooLarge, err)
	case err != nil:
		h.refuse(w, r, http.StatusBadRequest, err)
	default:
		if isSSLCheck(r, body) {
			w.WriteHeader(http.StatusOK)
			return
		}
		// The signature, and a time that is at most five minutes off this machine's clock, in either direction.
		_, _ = signed.Write(body) // a hash takes everything
		if err := signed.Ensure(); err != nil {
			h.refuse(w, r, http.StatusUnauthorized, err)
			return
		}
		challenge, err := h.store(ctx, r.URL.Path, body)
		switch {
		case errors.Is(err, core.ErrInvalid):
			h.refuse(w, r, http.StatusBadRequest, err)
		case err != nil:
			h.refuse(w, r, http.StatusServiceUnavailable, err)
		case challenge != "":
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(map[string]string{"challenge": challenge}) // a client that is gone asks again
		default:
			w.WriteHeader(http.StatusOK)
		}
	}
}

// store stores the body of a request to the path.
func (h *Handler) store(ctx context.Context, path string, body []byte) (challenge string, err error) {
	if path == EventsPath {
		return h.intake.Event(ctx, body)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "the body is not a form")
	}
	if path == CommandsPath {
		return "", h.intake.Command(ctx, form)
	}
	return "", h.intake.Interaction(ctx, []byte(form.Get("payload")))
}

// refuse answers with a status that is an error.
func (h *Handler) refuse(w http.ResponseWriter, r *http.Request, status int, cause error) {
	h.observer.Count(core.CountSlack, 1, "request", outcomeRefused)
	level := slog.LevelWarn
	if status == http.StatusUnauthorized { // anybody may cause it
		level = slog.LevelDebug
	}
	h.log.Log(r.Context(), level, "request of Slack refused", "path", r.URL.Path, "status", status, "err", cause)
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
