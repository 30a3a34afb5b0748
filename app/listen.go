package app

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/datadir"
)

// Listen opens the configured address and writes it, and how the process was started, into
// the data folder; an error says what to do.
func (a *App) Listen(ctx context.Context, start datadir.StartOptions) (net.Listener, error) {
	if err := a.checkReach(ctx); err != nil {
		return nil, err
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", a.Config.Addr)
	if err != nil {
		return nil, core.Errorf(core.ErrUnavailable, "cannot listen on %s: %v; choose another address with --addr", a.Config.Addr, err)
	}
	// Before anybody is told that it is ready: the folder must say where.
	a.start = start
	if err := a.announce(l); err != nil {
		return nil, errors.Join(explainFullDisk(err), l.Close())
	}
	return l, nil
}

// announce writes where this process can be reached into the data folder.
func (a *App) announce(listener net.Listener) error {
	return a.folder.Announce(datadir.Server{URL: a.LocalURL(listener), PID: os.Getpid(), Token: a.token, Start: a.start})
}

// LocalURL returns the URL by which this machine reaches the listener. One of all
// addresses is reached by a loopback address: the one of the family that the settings
// name, as the listener's own address is [::] for 0.0.0.0 too.
func (a *App) LocalURL(listener net.Listener) string {
	tcp, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !tcp.IP.IsUnspecified() {
		return "http://" + listener.Addr().String()
	}
	host := "127.0.0.1"
	if strings.HasPrefix(a.Config.Addr, "[::") {
		host = "::1"
	}
	return "http://" + net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}
