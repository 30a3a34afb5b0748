package chat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"bobbin/app/core"
)

// Ids of Slack.
var (
	slackTeam    = regexp.MustCompile(`^T[A-Z0-9]{1,30}$`)
	slackChannel = regexp.MustCompile(`^[CDG][A-Z0-9]{1,30}$`)
	slackTime    = regexp.MustCompile(`^[0-9]{1,12}\.[0-9]{6}$`)
)

// errSlackOff refuses what needs Slack.
var errSlackOff = core.Errorf(core.ErrInvalid, "Slack is off: set slack.bot_token or slack.client_id, then attach sessions to threads")

// placeTime is how long Slack may take to say where a thread is.
const placeTime = 3 * time.Second

// SlackThread returns the thread of Slack that the session is attached to, and what is wrong with
// its posts; ErrNotFound if there is none.
func (s *Service) SlackThread(ctx context.Context, tenant core.Tenant, session core.SessionID) (core.SlackThreadStatus, error) {
	status, err := s.Slack.Status(ctx, tenant, session)
	if err == nil && s.SlackApp != nil {
		limited, cancel := context.WithTimeout(ctx, placeTime)
		defer cancel()
		status.SlackPlace = s.SlackApp.Describe(limited, status.SlackThread)
	}
	return status, err
}

// FixSlackPost does what a person wants done about a post that is listed as a core.SlackFault. ErrNotFound
// if it is not, ErrConflict if the action does not suit its state.
func (s *Service) FixSlackPost(ctx context.Context, tenant core.Tenant, fix core.SlackPostFix) error {
	if _, done, err := core.CommittedResult(ctx); done || err != nil {
		return err
	}
	p, err := s.SlackPosts.Fault(ctx, tenant, fix.SessionID, fix.ItemID, fix.Part)
	if err != nil {
		return err
	}
	switch fix.Action {
	case core.SlackSend:
		events, err := s.SlackPosts.Resend(ctx, tenant, p)
		return s.publish(ctx, events, err)
	case core.SlackDismiss:
		p.Error = ""
		return s.SlackPosts.Settle(ctx, p)
	case core.SlackLook:
	}
	switch {
	case p.State != core.SlackPostUnknown:
		return core.Errorf(core.ErrConflict, "the state of the post is %s: there is nothing to look for; send it again, or dismiss it", p.State)
	case s.SlackApp == nil:
		return errSlackOff
	}
	return s.SlackApp.LookUp(ctx, p)
}

// AttachSlack attaches a session to a thread of Slack, or changes the mode of its thread. The
// thread shows what happens from then on. Without a mode the thread follows the session. ErrInvalid
// if Slack is off, or the app not installed in the workspace; ErrConflict if the thread or the
// session is attached to another one.
func (s *Service) AttachSlack(ctx context.Context, tenant core.Tenant, t core.SlackThread) (core.SlackThread, error) {
	t.Owner, t.Mode = tenant.Owner, cmp.Or(t.Mode, core.SlackToSlack)
	var f faults
	if t.Team == "" && s.SlackApp != nil {
		team, err := s.SlackApp.OnlyTeam(ctx)
		if err != nil {
			return core.SlackThread{}, err
		}
		t.Team = team
	}
	checkID := func(field, value string, form *regexp.Regexp, example string) {
		if !form.MatchString(value) {
			f.Add(field, "%q is not one; write for example %s", core.Clip(value, 40), example)
		}
	}
	checkID("team", t.Team, slackTeam, "T012ABCDEF")
	checkID("channel", t.Channel, slackChannel, "C012ABCDEF")
	checkID("thread", t.Thread, slackTime, "1700000000.000100")
	if modes := []core.SlackMode{core.SlackTwoWay, core.SlackToSlack, core.SlackToWeb, core.SlackOff}; !slices.Contains(modes, t.Mode) {
		f.Add("mode", "%q is not one; use %s", core.Clip(string(t.Mode), 40), strings.Trim(strings.ReplaceAll(fmt.Sprint(modes), " ", ", "), "[]"))
	}
	if err := f.Err(); err != nil {
		return core.SlackThread{}, err
	}
	known, err := s.Slack.OfSession(ctx, tenant, t.SessionID)
	if err != nil && !errors.Is(err, core.ErrNotFound) {
		return core.SlackThread{}, err
	}
	if known.Team != t.Team { // else only the mode may be new
		if _, err := s.Sessions.Get(ctx, tenant, t.SessionID); err != nil {
			return core.SlackThread{}, err
		}
		if s.SlackApp == nil {
			return core.SlackThread{}, errSlackOff
		}
		if err := s.SlackApp.CheckInstalled(ctx, t.Team); err != nil {
			return core.SlackThread{}, err
		}
	}
	if known == t {
		return t, nil
	}
	if err := s.BindSlack(ctx, t); err != nil {
		return core.SlackThread{}, err
	}
	thread, events, err := s.Slack.SetMode(ctx, tenant, t.SessionID, t.Mode)
	return thread, s.publish(ctx, events, err)
}

// BindSlack binds a thread of Slack to its session, as SlackThreads.Bind does.
func (s *Service) BindSlack(ctx context.Context, t core.SlackThread) error {
	events, err := s.Slack.Bind(ctx, t)
	return s.publish(ctx, events, err)
}

// DetachSlack separates a session from its thread of Slack. What was posted stays there. It
// may be repeated.
func (s *Service) DetachSlack(ctx context.Context, tenant core.Tenant, session core.SessionID) error {
	events, err := s.Slack.Unbind(ctx, tenant, session)
	return s.publish(ctx, events, err)
}
