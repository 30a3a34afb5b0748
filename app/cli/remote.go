package cli

import (
	"net/netip"
	"os"
	"strings"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

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
