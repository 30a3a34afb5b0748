package cli

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app"
	"bobbin/app/admin"
	"bobbin/app/core"
)

// withAdmin calls do with what looks after keys and the audit log. It works on the
// database, whether a server runs or not.
func (p *program) withAdmin(cmd *cobra.Command, do func(context.Context, *admin.Service) error) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	logger, err := p.logger(cfg, origins, true)
	if err != nil {
		return err
	}
	return app.Admin(cmd.Context(), cfg, logger, func(s *admin.Service) error { return do(cmd.Context(), s) })
}

// actor is who calls the command line, for the audit log.
func actor() string {
	if u, err := user.Current(); err == nil {
		return "cli:" + u.Username
	}
	return "cli"
}

func (p *program) createKey() *cobra.Command {
	var in admin.NewKey
	var scopes []string
	expires := ""
	cmd := &cobra.Command{
		Use: "create <name>", Short: "Make a key in the database, and print its secret once",
		Long: "Makes a key that counts at once, also for a server that runs. The database holds the hash of its\n" +
			"secret only: nobody can print it again. Scopes are read (look), write (change, and let agents\n" +
			"work) and metrics (read /metrics, which is of all owners).",
		Example: "  bobbin keys create web\n" +
			"  bobbin keys create grafana --scopes metrics\n" +
			"  bobbin keys create report --owner web --scopes read --expires 90d",
		Args: oneWord("which name? Unless --owner says another, it is the owner of what the key makes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			in.Name, in.Actor = args[0], actor()
			if in.Rights, err = core.ParseRights(scopes); err != nil {
				return err
			}
			if in.Expires, err = parseSpan(expires); err != nil {
				return err
			}
			return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
				key, secret, err := s.CreateKey(ctx, in)
				if err != nil {
					return err
				}
				return p.printCreated(key, secret)
			})
		},
	}
	p.withJSON(cmd)
	cmd.Flags().StringVar(&in.Owner, "owner", "", "the owner of what the key makes and sees (default its name)")
	cmd.Flags().StringSliceVar(&scopes, "scopes", core.ReadWrite.Words(), "what the key may do: read, write, metrics")
	cmd.Flags().StringVar(&expires, "expires", "", "after how long it opens nothing any more, such as 12h or 90d (default never)")
	return cmd
}

// parseSpan reads a time such as 12h or 90d; empty is 0.
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
		return 0, core.Errorf(core.ErrInvalid, "%.40q is not a time; write for example 12h or 90d", s)
	}
	return span, nil
}

func (p *program) printCreated(key core.APIKey, secret string) error {
	if p.json {
		return p.printJSON(struct {
			core.APIKey
			Secret string `json:"secret"`
		}{key, secret})
	}
	fmt.Fprintf(p.Out, "secret, for the caller; it is shown only now:\n  %s\n\n", secret)
	fmt.Fprintf(p.Out, "key %s of %s, scopes %s, expires: %s. It counts at once; the caller sends it with every request:\n  Authorization: Bearer %s\n",
		key.ID, key.Owner, key.Rights, day(key.ExpiresAt, "never"), secret)
	return nil
}

// day shows a time, or the word for none.
func day(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.Local().Format("2006-01-02 15:04")
}

func (p *program) revokeKey() *cobra.Command {
	cmd := &cobra.Command{
		Use: "revoke <id>", Short: "Make a key of the database open nothing any more",
		Long: "Revokes a key of the database, by its id, or by its name if only one valid key has that. A server\n" +
			"refuses it after two seconds at the latest. Requests that it has let in before go on.",
		Example: "  bobbin keys revoke 01a1fd1b-c2ab-74fe-af4a-73c58ae3b243",
		Args:    oneWord("which key? Its id is in: " + "bobbin keys list"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
				key, err := s.RevokeKey(ctx, args[0], actor())
				if err != nil {
					return err
				}
				if p.json {
					return p.printJSON(key)
				}
				fmt.Fprintf(p.Out, "key %s (%s) is revoked since %s\n", key.ID, key.Name, day(key.RevokedAt, ""))
				return nil
			})
		},
	}
	p.withJSON(cmd)
	return cmd
}

// storedView is a key of the database as it is listed.
type storedView struct {
	core.APIKey
	From string `json:"from"`
}

// listKeys lists the keys of the database and those of the configuration.
func (p *program) listKeys(cmd *cobra.Command) error {
	cfg, origins, err := p.load(cmd)
	if err != nil {
		return err
	}
	return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
		stored, err := s.Keys(ctx)
		if err != nil {
			return err
		}
		items := []any{}
		for _, k := range stored {
			items = append(items, storedView{k, "database"})
		}
		for _, k := range cfg.Auth.Keys {
			items = append(items, viewOf(k, origins.Of("auth.keys").From))
		}
		if p.json {
			return p.printJSON(core.Page[any]{Items: items})
		}
		return p.printKeys(items)
	})
}

func (p *program) printKeys(items []any) error {
	if len(items) == 0 {
		fmt.Fprintf(p.Out, "no keys: only this machine may call. This makes one: %s keys create <name>\n", programName())
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tOWNER\tSCOPES\tCREATED\tLAST USED\tSTATE\tFROM")
	for _, item := range items {
		switch k := item.(type) {
		case storedView:
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Name, k.Owner, k.Rights, day(&k.CreatedAt, ""), day(k.LastUsedAt, "never"), stateOf(k.APIKey), k.From)
		case keyView:
			fmt.Fprintf(w, "sha256 %s…\t%s\t%s\t%s\t\t\tvalid, %s\t%s\n", k.SHA256, k.Name, k.Owner, core.ReadWrite, k.Stored, k.From)
		}
	}
	return w.Flush()
}

// stateOf says whether a key opens something.
func stateOf(k core.APIKey) string {
	switch {
	case k.RevokedAt != nil:
		return "revoked " + day(k.RevokedAt, "")
	case !k.Valid(time.Now()):
		return "expired " + day(k.ExpiresAt, "")
	case k.ExpiresAt != nil:
		return "until " + day(k.ExpiresAt, "")
	default:
		return "valid"
	}
}

// checkStored says whose key of the database a secret is.
func (p *program) checkStored(cmd *cobra.Command, secret string) error {
	return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
		key, err := s.KeyOf(ctx, secret)
		switch {
		case errors.Is(err, core.ErrNotFound):
			return core.Errorf(core.ErrUnauthorized, "this is no key, neither of the configuration nor of the database (SHA-256 %s…)", core.SecretHash(secret)[:shownDigits])
		case err != nil:
			return err
		case p.json:
			return p.printJSON(storedView{key, "database"})
		}
		fmt.Fprintf(p.Out, "this is the key %s (%s) of %s: %s, scopes %s\n", key.ID, key.Name, key.Owner, stateOf(key), key.Rights)
		return nil
	})
}
