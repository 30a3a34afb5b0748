package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/api/ops"
	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/slack"
)

func (p *program) slackManifestCommand() *cobra.Command {
	email := false
	cmd := &cobra.Command{
		Use: "manifest [address]", Short: "Print the manifest of a Slack app for this Bobbin",
		Long: "Prints the manifest to paste at https://api.slack.com/apps under \"From a manifest\". With the public\n" +
			"address of this Bobbin, Slack sends to it; without one the app uses Socket Mode: Bobbin connects to\n" +
			"Slack, and needs no public address.",
		Example: "  bobbin slack manifest\n  bobbin slack manifest https://bobbin.example.org",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			manifest, err := slack.Manifest(strings.Join(args, ""), email)
			if err == nil {
				_, err = fmt.Fprintf(p.Out, "%s\n", manifest)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&email, "email", false, "with the scope for slack.link_by_email")
	return cmd
}

// findSlackThread returns the thread of the session; nil if it has none.
func findSlackThread(ctx context.Context, s connection, id core.SessionID) (*core.SlackThreadStatus, error) {
	thread, err := client.Call(ctx, s.client, ops.GetSlackThread, ops.InSession{SessionID: id})
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
