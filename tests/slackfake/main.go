// Slackfake runs a Slack server in memory on this machine, with a workspace, two channels, two
// users and a page to write on. Everything is gone when it stops.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"bobbin/tests/slackfake/fakeslack"
)

func main() {
	addr := flag.String("listen", "127.0.0.1:8090", "`address` of the fake Slack")
	bobbin := flag.String("bobbin", "http://127.0.0.1:8080", "`address` of Bobbin, which gets the events")
	flag.Parse()
	if err := run(*addr, *bobbin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(addr, bobbin string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	s, err := fakeslack.New(fakeslack.Options{Addr: addr})
	if err != nil {
		return err
	}
	ws := s.AddWorkspace("Acme")
	ws.AddUser("Alice", "alice@example.org").DM()
	ws.AddUser("Bob", "bob@example.org").DM()
	ws.AddChannel("", "general")
	ws.AddChannel("", "random")
	s.SetURLs(fakeslack.URLsBelow(bobbin))
	fmt.Printf(`The fake Slack is at %s

Start Bobbin with

  export BOBBIN_SLACK_API_URL=%s
  export BOBBIN_SLACK_BOT_TOKEN=%s
  export BOBBIN_SLACK_SIGNING_SECRET=signing-secret

for Socket Mode also

  export BOBBIN_SLACK_APP_TOKEN=xapp-1-A0001-1

Ctrl-C stops the fake Slack.
`, s.URL, s.APIURL(), ws.Install())
	<-ctx.Done()
	return s.Close()
}
