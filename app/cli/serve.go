package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	draw "bobbin/app/cli/term"
	"bobbin/app/core/config"
)

func (p *program) serve() *cobra.Command {
	return &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: "Runs the server until Ctrl-C or SIGTERM. Without any settings it keeps everything in\n" +
			"./bobbin-data and listens on http://127.0.0.1:8080 for this machine only.",
		Example: "  bobbin serve\n  bobbin serve --addr 127.0.0.1:9000 --data-dir /var/lib/bobbin",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return p.runServe(ctx, cmd)
		},
	}
}

func (p *program) runServe(ctx context.Context, cmd *cobra.Command) error {
	started := time.Now()
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	logger, err := p.logger(cfg, origins, false)
	if err != nil {
		return err
	}
	a, err := app.New(ctx, cfg, build(), logger)
	if err != nil {
		return err
	}
	listener, err := a.Listen(ctx)
	if err != nil {
		_ = a.Close() // the error before it says what is wrong
		return err
	}
	a.AuditStart(ctx)
	p.welcome(cfg, a, listener.Addr().String(), time.Since(started))
	err = a.Run(ctx, listener)
	if err == nil {
		fmt.Fprintln(p.Out, "bobbin has stopped; unfinished work goes on at the next start")
	}
	return err
}

// welcome says where the server is and what to do with it.
func (p *program) welcome(cfg config.Config, a *app.App, addr string, took time.Duration) {
	fmt.Fprintf(p.Out, "bobbin %s is ready after %d ms\n", build().Version, took.Milliseconds())
	fmt.Fprintf(p.Out, "  api       http://%s\n", addr)
	fmt.Fprintf(p.Out, "  model     %s (%s)\n", a.Choice().Model, a.Choice().Reason)
	window, hint := a.Window()
	if hint != "" {
		hint = " (" + hint + ")"
	}
	fmt.Fprintf(p.Out, "  window    %s tokens%s\n", draw.Number(window), hint)
	fmt.Fprintf(p.Out, "  database  %s\n", cfg.Database.URL)
	if joined := a.Joined(); joined != "" {
		fmt.Fprintf(p.Out, "  replicas  %s\n", joined)
	}
	fmt.Fprintf(p.Out, "  agents    %s\n", a.AgentNames())
	fmt.Fprintf(p.Out, "  memories  %s\n", a.Embedding())
	fmt.Fprintf(p.Out, "  try       %s chat     (in another terminal)\n\n", programName())
}
