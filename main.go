// Bobbin is an agent server for conversations that go on for ever: it winds long
// threads small and never cuts one. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bobbin/app/cli"
)

func main() {
	// Ctrl-C is left to the commands: in a chat it ends the answer, not the program.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
