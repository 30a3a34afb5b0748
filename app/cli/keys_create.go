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
		Args: requireOneArg("which name? It becomes the owner of everything created with the key, unless --owner names another"),
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
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(struct {
						core.APIKey
						Secret string `json:"secret"`
					}{key, secret})
				}
				fmt.Fprintf(p.Out, "secret, for the caller; it is shown only once:\n  %s\n\n", secret)
				fmt.Fprintf(p.Out, "key %s of %s, scopes %s, expires: %s. It takes effect immediately; the caller sends it with every request:\n  Authorization: Bearer %s\n",
					key.ID, key.Owner, key.Rights, formatTime(key.ExpiresAt, "never"), secret)
				if key.ExpiresAt == nil {
					fmt.Fprintf(p.Out, "\nit never expires: whoever finds it can use it until it is revoked; use --expires 90d to create keys that expire\n")
				}
				return nil
			})
		},
	}
	p.withJSON(cmd)
	cmd.Flags().StringVar(&in.Owner, "owner", "", "the owner of what the key creates and sees (default: its name)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", core.ReadWrite.Words(), "what the key may do: read, write, metrics, delete, export")
	cmd.Flags().StringVar(&expires, "expires", "", "when the key expires, such as 12h or 90d (default: never)")
	return cmd
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

func (p *program) newKey(name string) error {
	if !config.ValidKeyName(name) {
		return core.Errorf(core.ErrInvalid, "the name %q must be 1 to 64 letters, digits, and . _ @ -", name)
	}
	key, secret := config.NewAPIKey(name)
	setting := name + ":" + key.Secret.Reveal()
	if p.json {
		return p.printJSON(struct {
			Name    string `json:"name"`
			Secret  string `json:"secret"`
			Setting string `json:"setting"`
		}{name, secret, setting})
	}
	fmt.Fprintf(p.Out, "secret, for the caller; it is shown only once:\n  %s\n\n", secret)
	fmt.Fprintf(p.Out, "add the hash to bobbin.yaml:\n  auth:\n    keys:\n      - %q\n\n", setting)
	fmt.Fprintf(p.Out, "or to the environment, separated by commas:\n  BOBBIN_AUTH_KEYS=%s\n\n", setting)
	fmt.Fprintf(p.Out, "then restart Bobbin; the caller sends the secret with every request:\n  Authorization: Bearer %s\n", secret)
	return nil
}
