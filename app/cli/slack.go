package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/slack"
)

func (p *program) slackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "slack", Short: "Connect Slack workspaces",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	cmd.AddCommand(p.slackManifestCommand())
	return cmd
}

func (p *program) slackManifestCommand() *cobra.Command {
	var o slack.ManifestOptions
	cmd := &cobra.Command{
		Use: "manifest [address]", Short: "Print the manifest of a Slack app for this Bobbin",
		Long: "Prints the manifest to paste at https://api.slack.com/apps under \"From a manifest\". With the public\n" +
			"address of this Bobbin, Slack sends to it; without one the app uses Socket Mode: Bobbin connects to\n" +
			"Slack, and needs no public address.",
		Example: "  bobbin slack manifest\n  bobbin slack manifest https://bobbin.example.org",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Address = firstOf(args)
			manifest, err := slack.Manifest(o)
			if err == nil {
				_, err = fmt.Fprintf(p.Out, "%s\n", manifest)
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&o.Email, "email", false, "with the scope for slack.link_by_email")
	return cmd
}

// firstOf returns the first argument; empty = there is none.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
