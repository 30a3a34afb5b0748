package purge

import (
	"context"
	"fmt"
	"slices"

	"bobbin/app/core"
)

// admitPosts returns ErrInvalid if posts in Slack are to be deleted, but Slack is off.
func (s *Service) admitPosts(wanted bool) error {
	if wanted && s.DeletePosts == nil {
		return core.Errorf(core.ErrInvalid, "posts in Slack cannot be deleted: Slack is off (slack.bot_token, slack.client_id)")
	}
	return nil
}

// deletePosts deletes the posts of the sessions from Slack, if they are to be. It may be repeated
// while the sessions exist. The posts of the sessions that a deletion began with are gone already.
func (s *Service) deletePosts(ctx context.Context, wanted bool, ids []core.SessionID, before *core.DeletionPlan) (core.Purged, error) {
	var gone core.Purged
	if !wanted || s.DeletePosts == nil {
		return gone, nil
	}
	for _, id := range ids {
		if before != nil && slices.Contains(before.Sessions, id) {
			continue
		}
		posts, err := s.DeletePosts(ctx, id, false)
		gone.Posts.Add(posts)
		if err != nil {
			return gone, err
		}
	}
	return gone, nil
}

// countPosts adds to a preview how many posts are to be deleted.
func (s *Service) countPosts(ctx context.Context, report *core.PurgeReport) error {
	report.SlackPosts = &core.PurgedPosts{}
	for _, id := range report.Sessions {
		posts, err := s.DeletePosts(ctx, id, true)
		if err != nil {
			return err
		}
		report.SlackPosts.Add(posts)
	}
	report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack that would be deleted: %d", report.SlackPosts.Found))
	return nil
}

// reportPosts adds to a report what became of the posts in Slack.
func (s *Service) reportPosts(report *core.PurgeReport, j job, gone core.Purged) {
	p := gone.Posts
	if j.before != nil && j.before.SlackPosts != nil {
		p.Add(*j.before.SlackPosts)
	}
	switch wanted := j.SlackPosts; {
	case wanted && s.DeletePosts == nil:
		report.Notes = append(report.Notes, "what was posted in Slack stays there: Slack is off")
	case wanted:
		report.SlackPosts = &p
		report.Notes = append(report.Notes, fmt.Sprintf("posts in Slack: %d deleted, %d not there any more, %d that Slack did not delete (the log says why), %d of which Slack does not say whether they are there",
			p.Deleted, p.Gone, p.Refused, p.Unknown))
	case gone.Removed["slack_posts"] > 0:
		report.Notes = append(report.Notes, "what was posted in Slack stays there; with --slack-posts (slack_posts) a purge deletes it first, afterwards it is no longer known")
	}
}
