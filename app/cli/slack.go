package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"bobbin/app/core"
	"bobbin/app/ops"
	"bobbin/app/slack"
)

func (p *program) slackCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "slack", Short: "Connect Slack workspaces",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	cmd.AddCommand(p.slackManifestCommand(), p.slackCheckCommand())
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

func (p *program) slackCheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "check [address]", Short: "Check the Slack settings and suggest fixes",
		Long: "Checks the tokens, also of all installations, their scopes and the clock, by asking Slack. With the public address of this Bobbin\n" +
			"it also sends a signed request there, as Slack does. The exit code is 1 if something does not work.",
		Example: "  bobbin slack check\n  bobbin slack check https://bobbin.example.org",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, logger, err := p.loadWithLogger(cmd)
			if err != nil {
				return err
			}
			found := ops.Diagnosis{Status: ops.VerdictOK}
			var installed []core.SlackInstallation
			if cfg.Slack.OAuth() {
				if installed, err = ops.SlackInstallations(cmd.Context(), cfg, logger); err != nil {
					return err
				}
			}
			for _, f := range slack.Check(cmd.Context(), cfg.Slack, installed, firstOf(args)) {
				status := ops.VerdictOK
				if f.Do != "" {
					status, found.Status = ops.VerdictFail, ops.VerdictFail
				}
				found.Findings = append(found.Findings, ops.Finding{Check: f.Check, Status: status, Detail: f.Detail, Do: f.Do})
			}
			return p.reportDiagnosis(found)
		},
	}
	p.withJSON(cmd)
	return cmd
}

// firstOf returns the first argument; empty = there is none.
func firstOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}
