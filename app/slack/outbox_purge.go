package slack

import (
	"context"
	"errors"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// maxPurgeTries is how often the deletion of a post is tried while Slack does not answer or
// refuses it for the moment.
const maxPurgeTries = 5

// PurgePosts deletes from Slack what was posted for a session, stores that with each post, and
// ends posting to the session's thread. A dry call only counts the posts. It may be repeated after
// an error, and then also counts what it deleted before. ErrUnavailable when Slack does not answer.
func (s *Outbox) PurgePosts(ctx context.Context, session core.SessionID, dry bool) (core.PurgedPosts, error) {
	var count core.PurgedPosts
	if !dry {
		if err := s.Threads.Stop(ctx, session); err != nil {
			return count, err
		}
	}
	posts, err := s.Posts.All(ctx, session)
	if err != nil {
		return count, err
	}
	for _, p := range posts {
		if dry {
			if maybeInSlack(p.State) {
				count.Found++
			}
			continue
		}
		f := newFollower(s, core.SlackBacklog{SlackThread: core.SlackThread{
			SessionID: session, Owner: p.Owner, Team: p.Team, Channel: p.Channel, Thread: p.Thread,
		}})
		state, err := f.purgePost(ctx, p)
		if err != nil {
			return count, err
		}
		count := &count
		n := &count.Refused // it is still there
		switch state {
		case core.SlackPostPending, core.SlackPostFailed, core.SlackPostRemoved:
			continue
		case core.SlackPostPurged:
			n = &count.Deleted
		case core.SlackPostGone:
			n = &count.Gone
		case core.SlackPostSending, core.SlackPostUnknown:
			n = &count.Unknown
		case core.SlackPostSent:
		}
		*n++
		count.Found++
	}
	return count, nil
}

// maybeInSlack reports whether a post in the state is in Slack, or may be.
func maybeInSlack(state core.SlackPostState) bool {
	return state == core.SlackPostSent || state == core.SlackPostSending || state == core.SlackPostUnknown
}

// purgePost deletes a post that is in Slack, or may be, and returns its state after that.
func (f *follower) purgePost(ctx context.Context, p core.SlackPost) (core.SlackPostState, error) {
	if !maybeInSlack(p.State) {
		return p.State, nil
	}
	if p.State != core.SlackPostSent {
		ts, err := f.findForPurge(ctx, p)
		if err != nil || ts == "" {
			return f.storePurge(ctx, p, err)
		}
		p.TS = ts
	}
	if p.Streaming { // one that is open may be protected; Slack may have ended it
		err := f.callPatiently(ctx, func(ctx context.Context, api *client) error {
			_, _, err := api.StopStreamContext(ctx, p.Channel, p.TS)
			return err
		})
		if errors.Is(err, core.ErrUnavailable) {
			return p.State, err
		}
	}
	err := f.callPatiently(ctx, func(ctx context.Context, api *client) error {
		_, _, err := api.DeleteMessageContext(ctx, p.Channel, p.TS)
		return err
	})
	if err == nil {
		p.State = core.SlackPostPurged
		return p.State, f.Posts.Purge(ctx, p)
	}
	return f.storePurge(ctx, p, err)
}

// findForPurge returns the ts of a post whose answer was lost; empty if it is not in Slack.
func (f *follower) findForPurge(ctx context.Context, p core.SlackPost) (ts string, err error) {
	if err := sleep(ctx, f.Settle); err != nil {
		return "", err
	}
	err = f.tryOften(ctx, func() (err error) {
		ts, err = f.findPost(ctx, p, "")
		return err
	})
	return ts, err
}

// storePurge stores what became of a post that was not deleted: without an error, or with the one
// that says so, it is not there; after a refusal its state stays.
func (f *follower) storePurge(ctx context.Context, p core.SlackPost, err error) (core.SlackPostState, error) {
	var answer slack.SlackErrorResponse
	switch {
	case errors.Is(err, core.ErrUnavailable) || ctx.Err() != nil:
		return p.State, err
	case err == nil, errors.As(err, &answer) && (answer.Err == "message_not_found" || answer.Err == "thread_not_found"):
		p.State = core.SlackPostGone
		return p.State, f.Posts.Purge(ctx, p)
	}
	f.Logger.WarnContext(ctx, "post not deleted from Slack", "session_id", p.SessionID, "item", p.ItemID, "part", p.Part, "channel", p.Channel, "err", err)
	return p.State, nil
}

// callPatiently calls Slack until it carries the call out or refuses it.
func (f *follower) callPatiently(ctx context.Context, do apiCall) error {
	return f.tryOften(ctx, func() error { return f.call(ctx, do) })
}

// tryOften repeats a call that may be repeated, after the time that Slack wants. It returns the
// error of a refusal, and ErrUnavailable if there is no answer.
func (f *follower) tryOften(ctx context.Context, call func() error) error {
	var err error
	for range maxPurgeTries {
		if err = call(); err == nil {
			return nil
		}
		means, wait := classify(err)
		if means == refused || wait == noTokenTime {
			return err
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
	return &core.Error{Kind: core.ErrUnavailable, Err: err, Message: "posts in Slack are not deleted, since Slack does not answer; try again later"}
}
