package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/folder"
)

// connection is a Bobbin to talk to.
type connection struct {
	client *client.Client
	how    string // which one, for people
}

// withServer calls do with the Bobbin that runs on the data folder, or else with
// one that lives as long as do.
func (p *program) withServer(cmd *cobra.Command, do func(context.Context, connection) error) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	if running, ok := folder.Running(cfg.DataDir); ok {
		s, err := reach(cfg.DataDir, running)
		if err != nil {
			return err
		}
		return do(cmd.Context(), s)
	}
	begun := false
	err = p.inProcess(cmd.Context(), cfg, origins, func(ctx context.Context, s connection) error {
		begun = true
		return do(ctx, s)
	})
	if begun || !errors.Is(err, core.ErrConflict) {
		return err
	}
	// Somebody holds the folder who cannot be reached yet: a server that starts.
	running, ok := awaitServer(cmd.Context(), cfg.DataDir)
	if !ok {
		return err
	}
	s, err := reach(cfg.DataDir, running)
	if err != nil {
		return err
	}
	return do(cmd.Context(), s)
}

// startTime is how long a server may take from holding its folder to being there.
const startTime = 3 * time.Second

// awaitServer waits for the server that holds the folder to say where it is.
func awaitServer(ctx context.Context, dir string) (folder.Server, bool) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	limit := time.NewTimer(startTime)
	defer limit.Stop()
	for {
		if running, ok := folder.Running(dir); ok {
			return running, true
		}
		select {
		case <-ctx.Done():
			return folder.Server{}, false
		case <-limit.C:
			return folder.Server{}, false
		case <-tick.C:
		}
	}
}

// reach returns a connection to the server that holds the folder.
func reach(dir string, running folder.Server) (connection, error) {
	c, err := client.New(client.Options{
		URL: running.URL, UserAgent: "bobbin-cli",
		HTTP: &http.Client{Transport: &announced{dir: dir, next: http.DefaultTransport, server: running}},
	})
	return connection{c, fmt.Sprintf("the server at %s", running.URL)}, err
}

// inProcess starts a Bobbin on a free port of this machine for the time of do.
func (p *program) inProcess(ctx context.Context, cfg config.Config, origins config.Origins, do func(context.Context, connection) error) error {
	cfg.Addr = "127.0.0.1:0"
	logger, err := p.logger(cfg, origins, true)
	if err != nil {
		return err
	}
	a, err := app.New(ctx, cfg, build(), logger)
	if err != nil {
		return err
	}
	listener, err := a.Listen(ctx)
	if err != nil {
		return errors.Join(err, a.Close())
	}
	c, err := client.New(client.Options{URL: "http://" + listener.Addr().String(), Key: a.Token(), UserAgent: "bobbin-cli"})
	if err != nil {
		return errors.Join(err, listener.Close(), a.Close())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(running, listener) }()
	err = do(ctx, connection{c, a.Choice().String()})
	stop()
	return errors.Join(err, <-ended)
}
