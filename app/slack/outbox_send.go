package slack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// MetadataEvent is the event type in the metadata of posts. Its payload names the delivery.
const MetadataEvent = "bobbin_delivery"

const deliveryField = "delivery_id"

// deliveryID names a post in its metadata.
func deliveryID(p core.SlackPost) string { return fmt.Sprintf("%s/%d", p.ItemID, p.Part) }

// stamp is the metadata of a post.
func stamp(p core.SlackPost) slack.MsgOption {
	return slack.MsgOptionMetadata(slack.SlackMetadata{EventType: MetadataEvent, EventPayload: map[string]any{
		deliveryField: deliveryID(p), "session_id": string(p.SessionID), "part": p.Part,
	}})
}

type content struct {
	text   string // plain, for notifications
	blocks []slack.Block
}

func (c content) options() slack.MsgOption {
	return slack.MsgOptionCompose(slack.MsgOptionText(c.text, false), slack.MsgOptionBlocks(c.blocks...),
		slack.MsgOptionDisableLinkUnfurl(), slack.MsgOptionDisableMediaUnfurl())
}

func (c content) hash() string {
	raw, err := json.Marshal(c.blocks)
	if err != nil {
		panic("outbox: " + err.Error()) // our own blocks
	}
	sum := sha256.Sum256(append(raw, c.text...))
	return hex.EncodeToString(sum[:8])
}

// outcome says what an error of Slack means.
type outcome int

const (
	refused  outcome = iota // Slack did nothing, and would not another time
	tryLater                // Slack did nothing
	unclear                 // Slack may have done it
)

// classify returns what the error of a call means, and how long to wait before another one.
func classify(err error) (outcome, time.Duration) {
	var limited *slack.RateLimitedError
	var answer slack.SlackErrorResponse
	var status slack.StatusCodeError
	var operation *net.OpError
	var later *laterError
	switch {
	case errors.As(err, &later):
		return tryLater, later.after
	case errors.Is(err, errNotInstalled), errors.Is(err, errSealed), isTokenRefused(err):
		return tryLater, noTokenTime
	case errors.As(err, &limited):
		return tryLater, max(limited.RetryAfter, time.Second)
	case isAnswer(err, "ratelimited", "rate_limited"):
		return tryLater, 10 * time.Second
	case isAnswer(err, "internal_error", "fatal_error", "service_unavailable", "request_timeout"):
		return unclear, unclearTime
	case errors.As(err, &answer):
		return refused, 0
	case errors.As(err, &status):
		if status.Code == http.StatusTooManyRequests {
			return tryLater, 10 * time.Second
		}
		if status.Code < http.StatusInternalServerError {
			return refused, 0
		}
	case errors.As(err, &operation) && operation.Op == "dial":
		return tryLater, retryTime
	}
	return unclear, unclearTime
}

// isRefused reports whether Slack did nothing, and would not another time.
func isRefused(err error) bool {
	means, _ := classify(err)
	return means == refused
}

// isAnswer reports whether Slack answered with one of the errors.
func isAnswer(err error, codes ...string) bool {
	answer, ok := errors.AsType[slack.SlackErrorResponse](err)
	return ok && slices.Contains(codes, answer.Err)
}

// isTokenRefused reports whether Slack says that the app's token does not work.
func isTokenRefused(err error) bool {
	return isAnswer(err, "invalid_auth", "not_authed", "account_inactive", "token_revoked", "accesslimited", "org_login_required", "ekm_access_denied")
}

// call calls Slack when it is the channel's turn. Calls that the rate limit refused are
// repeated; a laterError says that this takes too long.
func (f *follower) call(ctx context.Context, do apiCall) error {
	for {
		if err := f.pace.await(ctx, channelKey(f.SlackThread)); err != nil {
			return err
		}
		err := f.callOnce(ctx, do)
		limited, ok := errors.AsType[*slack.RateLimitedError](err)
		if !ok {
			return err
		}
		f.pace.slowDown(channelKey(f.SlackThread), max(limited.RetryAfter, time.Second))
	}
}

type apiCall func(context.Context, *client) error

// callOnce calls Slack. The call is finished even if ctx ends: its answer would be lost. A
// laterError says that there is no client for the workspace now, and nothing was called.
func (f *follower) callOnce(ctx context.Context, do apiCall) error {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), callTime)
	defer cancel()
	api, err := f.Clients.of(limited, f.Team)
	if err != nil {
		return newLaterError(err)
	}
	return do(limited, api)
}

func (f *follower) newPost(kind core.SlackPostKind, item string, part int) core.SlackPost {
	return core.SlackPost{
		SessionID: f.SessionID, ItemID: item, Part: part, Owner: f.Owner, Kind: kind,
		Team: f.Team, Channel: f.Channel, Thread: f.Thread,
	}
}

// post makes sure that the post is in Slack with the content. A post that Slack refuses is
// stored as failed, and is no error.
func (f *follower) post(ctx context.Context, p core.SlackPost, c content) (core.SlackPost, error) {
	return f.postWith(ctx, p, c.hash(), func(ctx context.Context, api *client) (string, error) {
		_, ts, err := api.PostMessageContext(ctx, f.Channel, slack.MsgOptionTS(f.Thread), c.options(), stamp(p))
		return ts, err
	})
}

// postWith is post for any call that makes a post and returns its ts.
func (f *follower) postWith(ctx context.Context, p core.SlackPost, hash string, send func(context.Context, *client) (string, error)) (core.SlackPost, error) {
	if err := f.pace.await(ctx, channelKey(f.SlackThread)); err != nil {
		return p, err
	}
	stored, begun, err := f.Posts.Begin(ctx, f.Worker, p)
	if err == nil && !begun && stored.State == core.SlackPostSending {
		if stored, err = f.reconcile(ctx, stored); err != nil || stored.State != core.SlackPostPending {
			return stored, err
		}
		stored, begun, err = f.Posts.Begin(ctx, f.Worker, p)
	}
	if err != nil || !begun {
		return stored, err
	}
	ctx = context.WithoutCancel(ctx) // the answer is to be stored
	err = f.callOnce(ctx, func(ctx context.Context, api *client) (err error) {
		stored.TS, err = send(ctx, api)
		return err
	})
	if err == nil {
		stored.State, stored.Hash = core.SlackPostSent, hash
		return stored, f.Posts.Update(ctx, f.Worker, stored)
	}
	return f.settle(ctx, stored, err)
}

// settle stores what became of a post whose call failed. An error says that the thread is to
// be continued later.
func (f *follower) settle(ctx context.Context, p core.SlackPost, cause error) (core.SlackPost, error) {
	means, wait := classify(cause)
	p.TS = ""
	switch means {
	case refused:
		if p.Streaming && isNoStream(cause) { // the message is posted when it is complete
			p.State, p.Streaming = core.SlackPostPending, false
			return p, f.Posts.Update(ctx, f.Worker, p)
		}
		f.Logger.WarnContext(ctx, "post refused by Slack", "session_id", f.SessionID, "item", p.ItemID, "part", p.Part, "err", cause)
		p.State, p.Error = core.SlackPostFailed, core.Clip(cause.Error(), maxError)
		return p, f.Posts.Update(ctx, f.Worker, p)
	case tryLater:
		f.pace.slowDown(channelKey(f.SlackThread), wait)
		p.State = core.SlackPostPending
		if err := f.Posts.Update(ctx, f.Worker, p); err != nil {
			return p, err
		}
		return p, newLaterError(cause)
	}
	p, err := f.reconcile(ctx, p)
	if err == nil && p.State == core.SlackPostPending {
		err = newLaterError(cause)
	}
	return p, err
}

// maxError bounds the stored reason of a failed post, in bytes.
const maxError = 300

// maxUnclear is how old a post without an answer may get.
const maxUnclear = time.Hour

// reconcile finds out whether a post whose answer was lost is in Slack, and stores that: sent,
// pending if it is not there, or unknown if Slack does not say.
func (f *follower) reconcile(ctx context.Context, p core.SlackPost) (core.SlackPost, error) {
	if err := core.Sleep(ctx, f.Settle); err != nil {
		return p, err
	}
	posts, err := f.Posts.Of(ctx, f.SessionID, p.ItemID)
	if err != nil {
		return p, err
	}
	for _, stored := range posts { // an event of Slack may have brought its ts
		if stored.Part == p.Part && stored.State == core.SlackPostSent {
			return stored, nil
		}
	}
	oldest, _, err := f.Posts.LastPosted(ctx, f.SlackThread)
	ts := ""
	if err == nil {
		ts, err = f.findPost(ctx, p, oldest)
	}
	switch {
	case err == nil && ts != "":
		p.State, p.TS = core.SlackPostSent, ts
	case err == nil && time.Since(p.CreatedAt) < maxUnclear:
		p.State = core.SlackPostPending
	case err != nil && !isRefused(err) && time.Since(p.CreatedAt) < maxUnclear:
		return p, newLaterError(err)
	default:
		p.State, p.Error = core.SlackPostUnknown, "Slack's answer was lost, and the thread could not be read"
		f.Logger.WarnContext(ctx, "unknown whether a post is in Slack", "session_id", f.SessionID, "item", p.ItemID, "part", p.Part, "err", err)
	}
	return p, f.Posts.Update(ctx, f.Worker, p)
}

// findPost reads the thread after the ts, empty = all of it, and returns the ts of the post; empty if it
// is not there.
func (f *follower) findPost(ctx context.Context, p core.SlackPost, oldest string) (string, error) {
	for cursor := ""; ; {
		var page []slack.Message
		err := f.call(ctx, func(ctx context.Context, api *client) (err error) {
			page, _, cursor, err = api.GetConversationRepliesContext(ctx, &slack.GetConversationRepliesParameters{
				ChannelID: f.Channel, Timestamp: f.Thread, Oldest: oldest, Cursor: cursor, IncludeAllMetadata: true, Limit: 200,
			})
			return err
		})
		if err != nil {
			return "", err
		}
		for _, m := range page {
			if is, err := f.isPost(ctx, m, p); is || err != nil {
				return m.Timestamp, err
			}
		}
		if cursor == "" {
			return "", nil
		}
	}
}

// isPost reports whether the message in Slack is the post. A stream has no metadata until it
// ends: it is the message of this app that no other post is.
func (f *follower) isPost(ctx context.Context, m slack.Message, p core.SlackPost) (bool, error) {
	if m.Metadata.EventType == MetadataEvent {
		return m.Metadata.EventPayload[deliveryField] == deliveryID(p), nil
	}
	if !p.Streaming || m.BotID == "" {
		return false, nil
	}
	api, err := f.Clients.of(ctx, f.Team)
	if err != nil || m.BotID != api.me.BotID {
		return false, err
	}
	_, err = f.Posts.PostAt(ctx, f.Team, f.Channel, m.Timestamp)
	if errors.Is(err, core.ErrNotFound) {
		return true, nil
	}
	return false, err
}

// edit makes the content of a post that is in Slack, and stores the post. Without a change
// it does nothing but that.
func (f *follower) edit(ctx context.Context, p core.SlackPost, c content) error {
	if p.State != core.SlackPostSent {
		return nil
	}
	if hash := c.hash(); hash != p.Hash {
		err := f.call(ctx, func(ctx context.Context, api *client) error {
			_, _, _, err := api.UpdateMessageContext(ctx, p.Channel, p.TS, c.options())
			return err
		})
		if err := f.changeError(ctx, p, err); err != nil {
			return err
		}
		if p.Hash, p.Error = hash, ""; err != nil { // it still shows something else
			p.Hash, p.Error = "", core.Clip(err.Error(), maxError)
		}
	}
	return f.Posts.Update(context.WithoutCancel(ctx), f.Worker, p)
}

func (f *follower) remove(ctx context.Context, p core.SlackPost) error {
	if p.State == core.SlackPostSent {
		err := f.call(ctx, func(ctx context.Context, api *client) error {
			_, _, err := api.DeleteMessageContext(ctx, p.Channel, p.TS)
			return err
		})
		if err := f.changeError(ctx, p, err); err != nil {
			return err
		}
	}
	p.State = core.SlackPostRemoved
	return f.Posts.Update(context.WithoutCancel(ctx), f.Worker, p)
}

// changeError returns what a failed change of a post means for the thread. Changes may be
// repeated, so an unclear one is; one that Slack refuses is logged.
func (f *follower) changeError(ctx context.Context, p core.SlackPost, err error) error {
	if err == nil {
		return nil
	}
	if !isRefused(err) {
		return newLaterError(err)
	}
	f.Logger.WarnContext(ctx, "change of a post refused by Slack", "session_id", f.SessionID, "item", p.ItemID, "part", p.Part, "err", err)
	return nil
}
