package cli

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/core"
	"bobbin/app/ops"
)

func (p *program) keysCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Create, list and revoke API keys",
		Long: "A key belongs to an owner: callers with the key see everything that was created with keys of that\n" +
			"owner. Keys are stored in the database (create, revoke), where they take effect immediately and can be\n" +
			"revoked, or in the configuration (new), for servers that are set up from files alone. If in doubt, use create.",
		Args: rejectUnknownCommand, RunE: showHelp,
	}
	setting := &cobra.Command{
		Use: "new <name>", Short: "Generate a key for the configuration; most people need `keys create`",
		Long: "Generates a random secret and prints it once. The setting holds only its hash, so that readers of the\n" +
			"configuration cannot use it. Nothing is stored: the key takes effect when the server starts with it.",
		Example: "  bobbin keys new web",
		Args:    requireOneArg("which name? It becomes the owner of everything created with the key"),
		RunE:    func(_ *cobra.Command, args []string) error { return p.newKey(args[0]) },
	}
	list := &cobra.Command{
		Use: "list", Short: "List the keys, without their secrets",
		Example: "  bobbin keys list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, origins, err := p.loadFolderSettings(cmd)
			if err != nil {
				return err
			}
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				stored, err := s.Keys(ctx)
				if err != nil {
					return err
				}
				items := []any{}
				for _, k := range stored {
					items = append(items, storedKeyView{k, "database"})
				}
				for _, k := range cfg.Auth.Keys {
					from := origins.Of("auth.keys").From
					sum, _ := k.Sum() // loaded settings are valid
					v := keyView{Name: k.Name, Owner: k.Name, SHA256: hex.EncodeToString(sum[:])[:shownHashDigits], Stored: "plain", From: from}
					if k.Hashed() {
						v.Stored = "hash"
					}
					items = append(items, v)
				}
				return printList(p, core.Page[any]{Items: items}, list[any]{
					none:   "no keys: only this machine has access. Create one with: " + programName() + " keys create <name>",
					titles: "ID|NAME|OWNER|SCOPES|CREATED|LAST USED|STATE|EXPIRES|FROM",
					cells:  keyCells,
				})
			})
		},
	}
	p.withJSON(setting, list)
	cmd.AddCommand(p.createKeyCommand(), list, p.revokeKeyCommand(), setting)
	return cmd
}

// keyView is a key of the configuration without its secret.
type keyView struct {
	Name   string `json:"name"`
	Owner  string `json:"owner"`
	SHA256 string `json:"sha256"` // the first digits, enough to tell keys apart
	Stored string `json:"stored"` // hash, or plain
	From   string `json:"from"`
}

const shownHashDigits = 12

// storedKeyView is a key of the database in a list.
type storedKeyView struct {
	core.APIKey
	From string `json:"from"`
}

// keyCells returns the cells of a key in the list.
func keyCells(item any) []any {
	if k, isStored := item.(storedKeyView); isStored {
		return []any{k.ID, k.Name, k.Owner, k.Rights, formatTime(&k.CreatedAt, ""), formatTime(k.LastUsedAt, "never"), stateOf(k.APIKey), formatTime(k.ExpiresAt, "never"), k.From}
	}
	k, _ := item.(keyView)
	return []any{"sha256 " + k.SHA256 + "…", k.Name, k.Owner, core.ReadWrite, "", "", "valid", "", k.Stored + ", " + k.From}
}

// stateOf returns the state of a key in words.
func stateOf(k core.APIKey) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + formatTime(k.RevokedAt, "")
	case !k.Valid(time.Now()):
		return "expired"
	default:
		return "valid"
	}
}
