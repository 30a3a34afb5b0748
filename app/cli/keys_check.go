package cli

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) checkKey(cmd *cobra.Command, args []string) error {
	cfg, origins, err := p.loadFolderSettings(cmd)
	if err != nil {
		return err
	}
	secret := strings.Join(args, "")
	if len(args) == 0 {
		if secret, err = p.readSecret(); err != nil {
			return err
		}
	}
	sum := sha256.Sum256([]byte(strings.TrimSpace(secret)))
	for _, k := range cfg.Auth.Keys {
		if known, ok := k.Sum(); !ok || known != sum {
			continue
		}
		if p.json {
			return p.printJSON(keyViewOf(k, origins.Of("auth.keys").From))
		}
		fmt.Fprintf(p.Out, "this key belongs to %s\n", k.Name)
		return nil
	}
	return p.checkStoredKey(cmd, strings.TrimSpace(secret))
}

// checkStoredKey prints which key of the database a secret belongs to.
func (p *program) checkStoredKey(cmd *cobra.Command, secret string) error {
	return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
		key, err := s.KeyOf(ctx, secret)
		switch {
		case errors.Is(err, core.ErrNotFound):
			return core.Errorf(core.ErrUnauthorized, "unknown key: it is neither in the configuration nor in the database (SHA-256 %s…)", core.SecretHash(secret)[:shownHashDigits])
		case err != nil:
			return err
		case p.json:
			return p.printJSON(storedKeyView{key, "database"})
		}
		fmt.Fprintf(p.Out, "this is key %s (%s) of %s: %s, scopes %s\n", key.ID, key.Name, key.Owner, stateOf(key), key.Rights)
		return nil
	})
}

// maxSecret is the maximum size of a secret, in bytes.
const maxSecret = 4096

// readSecret reads a secret without echoing it.
func (p *program) readSecret() (string, error) {
	if term.IsTerminal(int(p.In.Fd())) {
		fmt.Fprint(p.Err, "secret: ")
		raw, err := term.ReadPassword(int(p.In.Fd()))
		fmt.Fprintln(p.Err)
		return string(raw), err
	}
	return p.readInput(maxSecret)
}
