package cli

import (
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
)

// connectRemote returns a connection to the server at the address.
func (p *program) connectRemote(address string) (connection, error) {
	at, err := url.Parse(address)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "":
		return connection{}, core.Errorf(core.ErrInvalid, "a server address looks like https://host or http://host:port, not %q", address)
	case at.User != nil:
		return connection{}, core.Errorf(core.ErrInvalid, "a server address must not contain a password; use --key for the API key")
	}
	key, err := p.apiKey()
	if err != nil {
		return connection{}, err
	}
	if at.Scheme == "http" && !isThisMachine(at.Hostname()) && key != "" {
		_, _ = p.Err.Write([]byte("warning: the key and all messages are sent unencrypted to " + at.Host + "; use https\n"))
	}
	c, err := client.New(client.Options{URL: address, Key: key, UserAgent: "bobbin-cli", HTTP: &http.Client{Transport: remoteTransport()}, OnConnectionLost: p.reportLostConnection})
	return connection{client: c, description: "the server at " + at.Redacted()}, err
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

// isThisMachine reports whether the host is this machine's own.
func isThisMachine(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback() || host == "localhost"
}

// remoteTransport returns the transport to a remote server. It uses the environment's proxy
// for https only, where the proxy sees neither the key nor the content.
func remoteTransport() *http.Transport {
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) {
			if r.URL.Scheme != "https" {
				return nil, nil //nolint:nilnil // no proxy
			}
			return http.ProxyFromEnvironment(r)
		},
		DialContext:         (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout: connectTimeout,
		ForceAttemptHTTP2:   true,
	}
}
