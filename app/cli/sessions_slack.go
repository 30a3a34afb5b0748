package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// slackLink is the address of a message in Slack, as "Copy link" gives it.
var slackLink = regexp.MustCompile(`^https://[^/]+/archives/([A-Z0-9]+)/p([0-9]+)([0-9]{6})(?:\?(?:.*&)?thread_ts=([0-9.]+))?`)

// attachSlackCommand attaches a session to a thread of Slack.
func (p *program) attachSlackCommand() *cobra.Command {
	var thread core.SlackThread
	mode := string(core.SlackToSlack)
	cmd := &cobra.Command{
		Use:   "attach <id> <link to a Slack message>",
		Short: "Show a session in a thread of Slack, or change how",
		Long: "Attaches a session to the thread of a message in Slack (in Slack: \"Copy link\"). The thread shows what\n" +
			"happens from then on. With --mode two_way messages in the thread also go to the session; to_web and off\n" +
			"post nothing to Slack.",
		Example: "  bobbin sessions attach 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243 https://acme.slack.com/archives/C012ABCDEF/p1700000000000100 --team T012ABCDEF",
		Args:    requireSessionIDAnd("message in Slack", true), ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				at, err := parseSlackLink(args[1])
				if err != nil {
					return err
				}
				at.SessionID, at.Team, at.Enterprise, at.Mode = id, thread.Team, thread.Enterprise, core.SlackMode(mode)
				at, err = s.client.AttachSlack(ctx, at)
				if err != nil {
					return err
				}
				return p.printSlackThread(at)
			})
		},
	}
	cmd.Flags().StringVar(&thread.Team, "team", "", "`id` of the workspace (T…)")
	cmd.Flags().StringVar(&thread.Enterprise, "enterprise", "", "`id` of the organization in Enterprise Grid (E…)")
	cmd.Flags().StringVar(&mode, "mode", mode, "to_slack, to_web, two_way or off")
	p.withJSON(cmd)
	return cmd
}

// parseSlackLink returns the channel and the thread of a link to a message.
func parseSlackLink(link string) (core.SlackThread, error) {
	m := slackLink.FindStringSubmatch(strings.TrimSpace(link))
	if m == nil {
		return core.SlackThread{}, core.Errorf(core.ErrInvalid, "%q is not a link to a message in Slack; use \"Copy link\" there", core.Clip(link, 100))
	}
	t := core.SlackThread{Channel: m[1], Thread: m[2] + "." + m[3]}
	if m[4] != "" {
		t.Thread = m[4]
	}
	return t, nil
}

func (p *program) printSlackThread(t core.SlackThread) error {
	if p.json {
		return p.printJSON(t)
	}
	fmt.Fprintf(p.Out, "%s is attached to thread %s in channel %s: %s\n", t.SessionID, t.Thread, t.Channel, t.Mode)
	return nil
}

// findSlackThread returns the thread of the session; nil if it has none.
func findSlackThread(ctx context.Context, s connection, id core.SessionID) (*core.SlackThreadStatus, error) {
	thread, err := s.client.SlackThread(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, nil
	}
	return &thread, err
}

// printSlackStatus prints a session's thread, and what is wrong with its posts; nothing for nil.
func (p *program) printSlackStatus(t *core.SlackThreadStatus) {
	if t == nil {
		return
	}
	fmt.Fprintf(p.Out, "Slack: thread %s in channel %s, %s\n", t.Thread, t.Channel, t.Mode)
	if t.BehindSince != nil {
		fmt.Fprintf(p.Out, "  posts are missing since %s: %s\n", t.BehindSince.Local().Format(time.DateTime), cmp.Or(term.Line(t.Reason, maxReason), "they are being sent"))
	}
	for _, f := range t.Faults {
		fmt.Fprintf(p.Out, "  part %d of %s is %s in Slack: %s\n", f.Part+1, f.ItemID, f.State, term.Line(f.Reason, maxReason))
	}
}

// maxReason is how many characters are shown of why a post is not in Slack.
const maxReason = 200

// detachSlackCommand separates a session from its thread of Slack.
func (p *program) detachSlackCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "detach <id>",
		Short:   "Separate a session from its thread of Slack",
		Long:    "Separates a session from its thread of Slack. What was posted stays there.",
		Example: "  bobbin sessions detach 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireSessionID, ValidArgsFunction: p.completeSessions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withSession(cmd, args[0], func(ctx context.Context, s connection, id core.SessionID) error {
				if err := s.client.DetachSlack(ctx, id); err != nil {
					return err
				}
				fmt.Fprintf(p.Out, "%s is attached to no thread of Slack\n", id)
				return nil
			})
		},
	}
}
