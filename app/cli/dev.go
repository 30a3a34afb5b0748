package cli

import (
	"fmt"
	"os"
	"os/signal"

	"github.com/spf13/cobra"

	"bobbin/app/slack/fakeslack"
)

func (p *program) devCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Try Bobbin with stand-ins for what it talks to",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	cmd.AddCommand(p.devSlackCommand())
	return cmd
}

// devSlack is where the fake Slack listens and where it finds Bobbin.
type devSlack struct{ addr, bobbin string }

func (p *program) devSlackCommand() *cobra.Command {
	d := devSlack{}
	cmd := &cobra.Command{
		Use: "slack", Short: "Run a fake Slack with a page to try it",
		Long: "Runs a Slack server in memory on this machine, with a workspace, two channels and two users, and a page\n" +
			"on which you write as one of them. It prints the variables with which Bobbin talks to it. Everything is\n" +
			"gone when it stops.",
		Example: "  bobbin dev slack\n  bobbin dev slack --bobbin http://127.0.0.1:9000",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			s, err := fakeslack.New(fakeslack.Options{Addr: d.addr})
			if err != nil {
				return err
			}
			p.printDevSlack(s, d.populate(s))
			<-ctx.Done()
			return s.Close()
		},
	}
	cmd.Flags().StringVar(&d.addr, "listen", "127.0.0.1:8090", "`address` of the fake Slack")
	cmd.Flags().StringVar(&d.bobbin, "bobbin", "http://127.0.0.1:8080", "`address` of Bobbin, which gets the events")
	return cmd
}

// populate adds a workspace and returns the token of the app's bot there.
func (d devSlack) populate(s *fakeslack.Server) string {
	ws := s.AddWorkspace("Acme")
	token := ws.Install()
	ws.AddUser("Alice", "alice@example.org").DM()
	ws.AddUser("Bob", "bob@example.org").DM()
	ws.AddChannel("", "general")
	ws.AddChannel("", "random")
	s.SetURLs(fakeslack.URLsBelow(d.bobbin))
	return token
}

func (p *program) printDevSlack(s *fakeslack.Server, token string) {
	fmt.Fprintf(p.Out, "The fake Slack is at %s\n\nStart Bobbin with\n\n", s.URL)
	for _, v := range [][2]string{
		{"SLACK_API_URL", s.APIURL()}, {"SLACK_BOT_TOKEN", token}, {"SLACK_SIGNING_SECRET", "signing-secret"},
	} {
		fmt.Fprintf(p.Out, "  export BOBBIN_%s=%s\n", v[0], v[1])
	}
	fmt.Fprintf(p.Out, "\nfor Socket Mode also\n\n  export BOBBIN_SLACK_APP_TOKEN=xapp-1-A0001-1\n\nCtrl-C stops the fake Slack.\n")
}
