package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

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
		return item, finalError(err)
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

// finalError returns an error after which an item is not tried again.
func finalError(err error) error {
	return &core.Error{Kind: core.ErrInvalid, Message: err.Error(), Err: err}
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
