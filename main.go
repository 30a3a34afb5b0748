// Bobbin is an agent server for conversations that never end: it winds long threads small
// and never cuts one. See README.md.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"bobbin/app/cli"
)

func main() {
	// Commands handle Ctrl-C themselves: in a chat it stops the answer, not the program.
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		signals = append(signals, syscall.SIGHUP) // the terminal was closed
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
