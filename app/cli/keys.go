package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/ops"
)

func (p *program) keysCommand() *cobra.Command {
	cmd := groupOf("keys", "Create, list and revoke API keys")
	cmd.Long = "A key belongs to an owner: callers with the key see everything that was created with keys of that\n" +
		"owner. Keys are stored in the database (create, revoke), where they take effect immediately and can be\n" +
		"revoked, or in the configuration (new), for servers that are set up from files alone. If in doubt, use create."
	setting := &cobra.Command{
		Use: "new <name>", Short: "Generate a key for the configuration; most people need `keys create`",
		Long: "Generates a random secret and prints it once. The setting holds only its hash, so that readers of the\n" +
			"configuration cannot use it. Nothing is stored: the key takes effect when the server starts with it.",
		Example: "  bobbin keys new web",
		Args:    requireOne("name", "it becomes the owner of everything created with the key"),
		RunE: func(_ *cobra.Command, args []string) error {
			name := args[0]
			if !config.ValidKeyName(name) {
				return core.Errorf(core.ErrInvalid, "the name %q must be 1 to 64 letters, digits, and . _ @ -", name)
			}
			key, secret := config.NewAPIKey(name)
			setting := name + ":" + key.Secret.Reveal()
			return p.printOrDraw(struct {
				Name    string `json:"name"`
				Secret  string `json:"secret"`
				Setting string `json:"setting"`
			}{name, secret, setting}, nil, func(int, int) {
				fmt.Fprintf(p.Out, "secret, for the caller; it is shown only once:\n  %s\n\n", secret)
				fmt.Fprintf(p.Out, "add the hash to bobbin.yaml:\n  auth:\n    keys:\n      - %q\n\n", setting)
				fmt.Fprintf(p.Out, "or to the environment, separated by commas:\n  BOBBIN_AUTH_KEYS=%s\n\n", setting)
				fmt.Fprintf(p.Out, "then restart Bobbin; the caller sends the secret with every request:\n  Authorization: Bearer %s\n", secret)
			})
		},
	}
	listing := &cobra.Command{
		Use: "list", Short: "List the keys of the database, without their secrets",
		Example: "  bobbin keys list --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				keys, err := s.Keys.List(ctx)
				return printList(p, core.Page[core.APIKey]{Items: append([]core.APIKey{}, keys...)}, err, list[core.APIKey]{
					none:   "no keys in the database. Create one with: " + programName() + " keys create <name>",
					titles: "ID|NAME|OWNER|SCOPES|CREATED|LAST USED|STATE|EXPIRES",
					cells: func(k core.APIKey) []any {
						state := "valid"
						if k.RevokedAt != nil {
							state = "revoked " + formatTime(k.RevokedAt, "")
						} else if !k.Valid(time.Now()) {
							state = "expired"
						}
						return []any{k.ID, k.Name, k.Owner, k.Rights, formatTime(&k.CreatedAt, ""), formatTime(k.LastUsedAt, "never"), state, formatTime(k.ExpiresAt, "never")}
					},
				})
			})
		},
	}
	cmd.AddCommand(p.createKeyCommand(), p.withJSON(listing), p.revokeKeyCommand(), p.withJSON(setting))
	return cmd
}

func (p *program) createKeyCommand() *cobra.Command {
	var in ops.NewKey
	var scopes []string
	expires := ""
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Create a key in the database and print its secret once",
		Long: "Creates a key that takes effect immediately, even on a running server. The database stores only a hash\n" +
			"of the secret, which cannot be printed again. Scopes are read, write (change data and run agents),\n" +
			"metrics (read /metrics, which covers all owners), delete and export.",
		Example: "  bobbin keys create web\n" +
			"  bobbin keys create grafana --scopes metrics\n" +
			"  bobbin keys create report --owner web --scopes read --expires 90d",
		Args: requireOne("name", "it becomes the owner of everything created with the key, unless --owner names another"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			in.Name, in.Actor = args[0], currentActor()
			if in.Rights, err = core.ParseRights(scopes); err != nil {
				return err
			}
			if in.Expires, err = parseSpan(expires); err != nil {
				return err
			}
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				key, secret, err := s.CreateKey(ctx, in)
				return p.printOrDraw(struct {
					core.APIKey
					Secret string `json:"secret"`
				}{key, secret}, err, func(int, int) {
					fmt.Fprintf(p.Out, "secret, for the caller; it is shown only once:\n  %s\n\n", secret)
					fmt.Fprintf(p.Out, "key %s of %s, scopes %s, expires: %s. It takes effect immediately; the caller sends it with every request:\n  Authorization: Bearer %s\n",
						key.ID, key.Owner, key.Rights, formatTime(key.ExpiresAt, "never"), secret)
					if key.ExpiresAt == nil {
						fmt.Fprintf(p.Out, "\nit never expires: whoever finds it can use it until it is revoked; use --expires 90d to create keys that expire\n")
					}
				})
			})
		},
	}
	cmd.Flags().StringVar(&in.Owner, "owner", "", "the owner of what the key creates and sees (default: its name)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", core.ReadWrite.Words(), "what the key may do: read, write, metrics, delete, export")
	cmd.Flags().StringVar(&expires, "expires", "", "when the key expires, such as 12h or 90d (default: never)")
	return p.withJSON(cmd)
}

// parseSpan parses a duration such as 12h or 90d; empty is 0.
func parseSpan(s string) (time.Duration, error) {
	if s == "" {
		return 0, nil
	}
	span, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok {
		var n int
		n, err = strconv.Atoi(days)
		span = time.Duration(n) * 24 * time.Hour
		if n > 36500 {
			err = errors.New("too long")
		}
	}
	if err != nil || span <= 0 {
		return 0, core.Errorf(core.ErrInvalid, "%.40q is not a duration; write for example 12h or 90d", s)
	}
	return span, nil
}

func (p *program) revokeKeyCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use: "revoke <id>", Short: "Revoke a key",
		Long: "Revokes a key of the database by its id, or by its name if only one valid key has that name. Servers\n" +
			"reject it within two seconds. Requests that are already accepted continue.",
		Example: "  bobbin keys revoke 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    requireOne("key", "bobbin keys list shows the ids"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				key, err := s.RevokeKey(ctx, args[0], currentActor())
				return p.printOrDraw(key, err, func(int, int) {
					fmt.Fprintf(p.Out, "key %s (%s) was revoked on %s\n", key.ID, key.Name, formatTime(key.RevokedAt, ""))
				})
			})
		},
	})
}
