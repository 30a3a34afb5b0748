package cli

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
)

func (p *program) serveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Runs the server until Ctrl-C, SIGTERM or SIGHUP (a closed terminal), which shut it down\n" +
			"gracefully. Without any settings it stores everything in ./bobbin-data and listens on\n" +
			"http://127.0.0.1:8080 for this machine only. It reads the agent files when it starts;\n" +
			"bobbin agents reload makes it read them again.",
		Example: "  bobbin serve\n  bobbin serve --addr 127.0.0.1:9000 --data-dir /var/lib/bobbin",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			started := time.Now()
			cfg, origins, err := p.loadFolderSettings(cmd)
			if err != nil {
				return err
			}
			logger := p.newLogger(cfg, origins, false)
			a, err := app.New(ctx, cfg, readBuild(), logger)
			if err != nil {
				return err
			}
			g := datadir.StartOptions{Settings: map[string]string{}}
			if file := origins.File(); file != "" {
				g.File, _ = filepath.Abs(file) // empty on an error: a relative path is useless elsewhere
			}
			for _, k := range config.Keys() {
				switch from := origins.Of(k.Name).From; {
				case k.Flag() == "" && from == k.Env():
					g.Secrets = append(g.Secrets, from)
				case k.Flag() == "": // of the file
				case from == "--"+k.Flag():
					g.Settings[k.Name] = *p.flags[k.Name]
				case from == k.Env():
					g.Settings[k.Name] = os.Getenv(from)
				}
			}
			listener, err := a.Listen(ctx, g)
			if err != nil {
				_ = a.Close() // the first error says what is wrong
				return err
			}
			a.AuditStart(ctx)
			p.printWelcome(cfg, a, a.LocalURL(listener), origins.File(), time.Since(started))
			err = a.Run(ctx, listener)
			if err == nil {
				fmt.Fprintln(p.Out, "bobbin has stopped")
			}
			return err
		},
	}
}

// printWelcome prints where the server listens and how to use it. File is the configuration file in force; empty = none.
func (p *program) printWelcome(cfg config.Config, a *app.App, url, file string, took time.Duration) {
	fmt.Fprintf(p.Out, "bobbin %s is ready after %d ms\n", readBuild().Version, took.Milliseconds())
	fmt.Fprintf(p.Out, "  page      Open %s/\n  api       %s   (documentation: %s/docs)\n", url, url, url)
	if file != "" {
		fmt.Fprintf(p.Out, "  settings  %s\n", file)
	}
	fmt.Fprintf(p.Out, "  model     %s (%s)\n", a.Models.Choice.Model, a.Models.Choice.Reason)
	window, hint := a.Models.Window()
	if hint != "" {
		hint = " (" + hint + ")"
	}
	fmt.Fprintf(p.Out, "  window    %s tokens%s\n", core.Number(window), hint)
	fmt.Fprintf(p.Out, "  database  %s\n", cfg.Database.URL)
	if joined := a.Joined(); joined != "" {
		fmt.Fprintf(p.Out, "  replicas  %s\n", joined)
	}
	fmt.Fprintf(p.Out, "  agents    %s\n", a.AgentNames())
	fmt.Fprintf(p.Out, "  memories  %s\n", a.Embedding())
	if cfg.Slack.Enabled() {
		source := "expects events at " + url + "/slack/events"
		if !cfg.Slack.AppToken.Empty() {
			source = "Socket Mode"
		} else if cfg.Slack.OAuth() {
			source += ", is installed at " + url + "/slack/install"
		}
		fmt.Fprintf(p.Out, "  slack     %s (owner %s; check with %s)\n", source, cfg.Slack.Owner, p.suggestCommand("doctor"))
	}
	fmt.Fprintf(p.Out, "  try       %s     (in another terminal)\n\n", p.suggestCommand("chat"))
}
