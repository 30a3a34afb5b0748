package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/datadir"
)

type connection struct {
	client       *client.Client
	description  string // which server, for people
	ownFolder    string // the data folder, if this process serves it for the command; empty = a separate server
	settingsFile string // the configuration file of this process; empty = none, or a separate server
}

// withServer calls do with a connection to the server of serverAddress, or else the server that runs
// on the data folder, or else one that it starts in this process for as long as do runs.
func (p *program) withServer(cmd *cobra.Command, do func(context.Context, connection) error) error {
	if address := p.serverAddress(cmd); address != "" {
		at, err := url.Parse(address)
		switch {
		case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
			return core.Errorf(core.ErrInvalid, "a server address looks like https://host or http://host:port, not %q", address)
		case at.User != nil:
			return core.Errorf(core.ErrInvalid, "a server address must not contain a password; use --key for the API key")
		}
		key, err := p.apiKey()
		if err != nil {
			return err
		}
		ip, err := netip.ParseAddr(at.Hostname())
		isLocal := err == nil && ip.IsLoopback() || at.Hostname() == "localhost"
		if at.Scheme == "http" && !isLocal && key != "" {
			_, _ = p.Err.Write([]byte("warning: the key and all messages are sent unencrypted to " + at.Host + "; use https\n"))
		}
		c, err := client.New(client.Options{URL: address, Key: key, UserAgent: "bobbin-cli", HTTP: &http.Client{Transport: &http.Transport{
			Proxy: func(r *http.Request) (*url.URL, error) {
				if r.URL.Scheme != "https" {
					return nil, nil //nolint:nilnil // no proxy
				}
				return http.ProxyFromEnvironment(r)
			},
			DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
			TLSHandshakeTimeout: connectTimeout,
			ForceAttemptHTTP2:   true,
		}}, OnConnectionLost: p.reportLostConnection})
		s := connection{client: c, description: "the server at " + at.Redacted()}
		if err != nil {
			return err
		}
		return do(cmd.Context(), s)
	}
	return p.withFolderServer(cmd, do)
}

// withFolderServer is withServer for a command that works on this machine alone.
func (p *program) withFolderServer(cmd *cobra.Command, do func(context.Context, connection) error) error {
	cfg, origins, err := p.loadFolderSettings(cmd)
	if err != nil {
		return err
	}
	if running, ok := datadir.Running(cfg.DataDir); ok {
		return p.withRunning(cmd.Context(), cfg.DataDir, running, do)
	}
	if cmd.Flags().Changed("addr") {
		return core.Errorf(core.ErrInvalid, "%s, and --addr is the address of serve; for a server elsewhere use --url http://%s", noServerOn(cfg.DataDir), cfg.Addr)
	}
	entries, err := os.ReadDir(cfg.DataDir)
	begun, isNew := false, len(entries) == 0 && (err == nil || errors.Is(err, fs.ErrNotExist))
	err = p.inProcess(cmd.Context(), cfg, origins, func(ctx context.Context, s connection) error {
		begun = true
		talks := cmd.Name() == "chat" || cmd.Name() == "ask"
		switch {
		case cmd.Name() == "chat" && p.isAttended():
		case isNew:
			fmt.Fprintf(p.Err, "%s: created it; for a server elsewhere use --url\n", noServerOn(s.ownFolder))
		case talks:
			fmt.Fprintf(p.Err, "%s: working on it directly\n", noServerOn(s.ownFolder))
		}
		return do(ctx, s)
	})
	if begun || !errors.Is(err, core.ErrConflict) {
		return err
	}
	// Another process holds the folder and cannot be reached yet: a server that is starting.
	running, ok := awaitServer(cmd.Context(), cfg.DataDir, datadir.Server{})
	if !ok {
		return err
	}
	return p.withRunning(cmd.Context(), cfg.DataDir, running, do)
}

func noServerOn(folder string) string { return "no server is running on the folder " + folder }

// connectTimeout bounds how long a remote server may take to accept a connection.
const connectTimeout = 10 * time.Second

// startTimeout bounds how long a server may take from locking its folder to listening.
const startTimeout = 3 * time.Second

// awaitServer returns the server that holds the folder, once it announces its address, but not the one that is
// gone; false if there is none within startTimeout.
func awaitServer(ctx context.Context, dir string, gone datadir.Server) (datadir.Server, bool) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		running, ok := datadir.Running(dir)
		ok = ok && !running.Is(gone)
		if ok || core.Sleep(ctx, 50*time.Millisecond) != nil {
			return running, ok
		}
	}
}

// withRunning calls do with a connection to the server that runs on the folder.
func (p *program) withRunning(ctx context.Context, dir string, running datadir.Server, do func(context.Context, connection) error) error {
	c, err := client.New(client.Options{
		URL: running.URL, UserAgent: "bobbin-cli",
		HTTP: &http.Client{Transport: folderTransport{dir, localTransport()}}, OnConnectionLost: p.reportLostConnection,
	})
	if err != nil {
		return err
	}
	return do(ctx, connection{client: c, description: "the server at " + running.URL})
}

// reportLostConnection tells the user that an answer is interrupted because its server is
// unavailable.
func (p *program) reportLostConnection() {
	fmt.Fprintln(p.Err, "\n· connection lost; waiting for the server …")
}

// localTransport returns the transport to a server on this machine. It never uses a proxy,
// which would see the token and all content.
func localTransport() *http.Transport { return &http.Transport{Proxy: nil} }

// inProcess starts a server on a free port of this machine for as long as do runs.
func (p *program) inProcess(ctx context.Context, cfg config.Config, origins config.Origins, do func(context.Context, connection) error) error {
	cfg.Addr = "127.0.0.1:0"
	a, err := app.New(ctx, cfg, readBuild(), p.newLogger(cfg, origins, true))
	if err != nil {
		return err
	}
	listener, err := a.Listen(ctx, datadir.StartOptions{})
	if err != nil {
		return errors.Join(err, a.Close())
	}
	c, err := client.New(client.Options{
		URL: a.LocalURL(listener), Key: a.Token(), UserAgent: "bobbin-cli", HTTP: &http.Client{Transport: localTransport()},
	})
	if err != nil {
		return errors.Join(err, listener.Close(), a.Close())
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- a.Run(running, listener) }()
	err = do(ctx, connection{client: c, description: a.Models.Choice.String(), ownFolder: cfg.DataDir, settingsFile: origins.File()})
	stop()
	return errors.Join(err, <-ended)
}

// folderTransport sends requests to the server of a data folder, even if it restarts in
// between: a new process has another token, and may have another address.
type folderTransport struct {
	dir  string
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. It waits for a server that is starting. A request that did not reach the
// server, or that it rejected as unauthorized, is sent once more, to the server that follows.
func (t folderTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	server, stopped := datadir.Server{}, "has stopped; start it again with: "+programName()+" serve"
	fault := stopped
	for range 2 {
		next, running := awaitServer(r.Context(), t.dir, server)
		if !running {
			break
		}
		server = next
		response, err := t.sendTo(r, server)
		// A request certainly had no effect if no server listened, or it rejected the token.
		refused := err == nil && response.StatusCode == http.StatusUnauthorized
		if broken, ok := errors.AsType[*net.OpError](err); ok {
			refused = broken.Op == "dial"
		}
		if !refused {
			return response, err
		}
		if fault = stopped; response != nil {
			_ = response.Body.Close() // its answer is not needed
			fault = "rejects the token that it has left in " + t.dir + "; restart it"
		}
	}
	if r.Context().Err() != nil {
		return nil, context.Cause(r.Context())
	}
	return nil, core.Errorf(core.ErrUnavailable, "the server at %s %s", cmp.Or(server.URL, "http://"+r.URL.Host), fault)
}

// sendTo sends a copy of the request to the server.
func (t folderTransport) sendTo(r *http.Request, s datadir.Server) (*http.Response, error) {
	to, err := url.Parse(s.URL)
	if err != nil {
		return nil, err
	}
	out := r.Clone(r.Context())
	out.URL.Scheme, out.URL.Host, out.Host = to.Scheme, to.Host, to.Host
	out.Header.Set("Authorization", "Bearer "+s.Token)
	if r.GetBody != nil {
		if out.Body, err = r.GetBody(); err != nil {
			return nil, err
		}
	}
	return t.next.RoundTrip(out)
}

// apiKey returns the key to send; empty = none.
func (p *program) apiKey() (string, error) {
	name, isVariable := strings.CutPrefix(p.key, "env:")
	path, isFile := strings.CutPrefix(p.key, "@")
	switch {
	case p.key == "":
		return strings.TrimSpace(os.Getenv(config.KeyVariable)), nil
	case isVariable && os.Getenv(name) == "":
		return "", core.Errorf(core.ErrInvalid, "--key: the environment variable %s is empty", name)
	case isVariable:
		return strings.TrimSpace(os.Getenv(name)), nil
	case !isFile:
		return "", core.Errorf(core.ErrInvalid, "--key must be env:NAME or @file: other users of this machine can see command lines. Or set %s", config.KeyVariable)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", core.Errorf(core.ErrInvalid, "--key: %v", err)
	}
	defer func() { _ = file.Close() }() // only read
	const maxSecret = 4096              // bytes
	key, err := readAll(file, maxSecret)
	if err != nil {
		return "", err
	}
	if key = strings.TrimSpace(key); key == "" {
		return "", core.Errorf(core.ErrInvalid, "--key: %s contains no key", path)
	}
	return key, nil
}
