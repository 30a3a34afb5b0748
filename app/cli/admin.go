package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/user"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/logging"
	"bobbin/app/ops"
)

// withAdmin calls do with the service for keys, the audit log and deliveries. It works on the
// database directly, whether a server runs or not.
func (p *program) withAdmin(cmd *cobra.Command, do func(context.Context, *ops.Service) error) error {
	cfg, logger, err := p.withLogger(p.loadFolderSettings(cmd))
	if err != nil {
		return err
	}
	return ops.Admin(cmd.Context(), cfg, logger, func(s *ops.Service) error { return do(cmd.Context(), s) })
}

func currentActor() string {
	if u, err := user.Current(); err == nil {
		return "cli:" + u.Username
	}
	return "cli"
}

// formatTime formats a time; nil is none.
func formatTime(t *time.Time, none string) string {
	if t == nil {
		return none
	}
	return t.Local().Format("2006-01-02 15:04")
}

func (p *program) backupCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "backup <file>",
		Short: "Back up the SQLite database while the server runs",
		Long: "Writes a consistent copy of the database to a new file and checks it. The server keeps running. To\n" +
			"restore: stop the server, replace bobbin.db by the copy, and remove bobbin.db-wal and bobbin.db-shm.\n" +
			"For PostgreSQL use its own tools: see docs/OPERATION.md.",
		Example: "  bobbin backup /backups/bobbin-$(date +%F).db",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, logger, err := p.withLogger(p.loadServerSettings(cmd))
			if err != nil {
				return err
			}
			copied, err := ops.Backup(cmd.Context(), cfg, logger, args[0], currentActor())
			return p.printOrDraw(copied, err, func(int, int) {
				fmt.Fprintf(p.Out, "wrote %s bytes to %s, verified, schema version %d\n", core.Number(int(copied.Bytes)), copied.Path, copied.Version)
			})
		},
	})
}

func (p *program) migrateCommand() *cobra.Command {
	status := false
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database to the current schema",
		Long: "Applies pending migrations. The server does the same when it starts; use this command to\n" +
			"migrate in a separate step.",
		Example: "  bobbin migrate --status",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, logger, err := p.withLogger(p.loadFolderSettings(cmd))
			if err != nil {
				return err
			}
			v, err := ops.Migrate(cmd.Context(), cfg, logger, !status)
			return p.printOrDraw(struct {
				Database string `json:"database"`
				Version  int64  `json:"version"`
				Newest   int64  `json:"newest"`
				Pending  bool   `json:"pending"`
			}{cfg.Database.URL.String(), v.Current, v.Target, v.Pending()}, err, func(int, int) {
				fmt.Fprintf(p.Out, "database %s: version %d, newest %d\n", cfg.Database.URL, v.Current, v.Target)
			})
		},
	}
	cmd.Flags().BoolVar(&status, "status", false, "only print the version")
	return p.withJSON(cmd)
}

func (p *program) doctorCommand() *cobra.Command {
	var o ops.DoctorOptions
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Diagnose the installation and suggest fixes",
		Long: "Checks the configuration, the data folder, the database, the models, the agent files, their tools, Slack, the\n" +
			"clock and the address. It changes nothing, and calls models and the servers of tools only with\n" +
			"--call. The exit code is 1 if something does not work.",
		Example: "  bobbin doctor\n  bobbin doctor --call --json",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, origins, err := p.loadServerSettings(cmd)
			o.Config, o.Origins, o.Unseen, o.Err, o.Logger = cfg, origins, p.unseen, err, logging.New(p.Err, "error", "text")
			return p.reportDiagnosis(ops.Doctor(cmd.Context(), o))
		},
	}
	cmd.Flags().BoolVar(&o.Call, "call", false, "also call the models, with a few tokens each, and connect to the servers of tools")
	cmd.Flags().StringVar(&o.Address, "slack-address", "", "public `address` of this Bobbin: check that requests of Slack get there")
	return p.withJSON(cmd)
}

// reportDiagnosis prints the findings. Its error says that something does not work.
func (p *program) reportDiagnosis(found ops.Diagnosis) error {
	err := p.printOrDraw(found, nil, func(width, _ int) {
		for _, f := range found.Findings {
			line := fmt.Sprintf("%-4s  %s: %s", f.Status, f.Check, f.Detail)
			fmt.Fprintln(p.Out, term.Wrap(line, width, "      "))
			if f.Do != "" {
				do := strings.Replace(f.Do, "bobbin ", programName()+" ", 1)
				fmt.Fprintln(p.Out, term.Wrap("      → "+do, width, "        "))
			}
		}
		fmt.Fprintln(p.Out, map[ops.Verdict]string{
			ops.VerdictFail: "something does not work", ops.VerdictWarn: "everything works, but see the warnings", ops.VerdictOK: "everything works",
		}[found.Status])
	})
	if err == nil && found.Status == ops.VerdictFail {
		err = &silentError{"something does not work"}
	}
	return err
}

func (p *program) auditCommand() *cobra.Command {
	var q core.PageQuery
	cmd := &cobra.Command{
		Use: "audit", Short: "Show the audit log: keys, purges, backups, changed settings",
		Long: "Lists what operators did, newest first: keys created and revoked, sessions and users purged, sessions\n" +
			"removed by retention, backups, and settings that had changed when a server started.\n" +
			"It contains neither secrets nor users: a purged user appears as the beginning of the SHA-256 of the id,\n" +
			"so that only those who know the id can find the entry.",
		Example: "  bobbin audit --json --limit 200",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *ops.Service) error {
				page, err := s.Audit.List(ctx, q)
				return printList(p, page, err, list[core.AuditEntry]{
					none: "no entries yet", titles: "TIME|WHO|WHAT|OWNER|TARGET|DETAILS",
					cells: func(e core.AuditEntry) []any {
						return []any{e.CreatedAt, e.Actor, e.Action, e.Owner, e.Target, auditDetails(e)}
					},
					next: "audit",
				})
			})
		},
	}
	addPageFlags(cmd, &q)
	return p.withJSON(cmd)
}

// auditDetails returns the details of an entry; of a server start only what changed.
func auditDetails(e core.AuditEntry) string {
	var start core.StartDetails
	if e.Action != core.AuditConfigChanged || json.Unmarshal(e.Details, &start) != nil {
		return string(e.Details)
	}
	text := "version " + start.Version
	for _, key := range slices.Sorted(maps.Keys(start.Changed)) {
		text += fmt.Sprintf(", %s: %q, was %q", key, start.Changed[key].To, start.Changed[key].From)
	}
	return term.Line(text, 400)
}

func (p *program) showConfigCommand() *cobra.Command {
	return p.withJSON(&cobra.Command{
		Use:   "show",
		Short: "Print every setting, its value and where it comes from",
		Long: "Prints every setting, its effective value and where it comes from; secrets are masked. Those of an agent\n" +
			"are printed by `bobbin agents show`.",
		Example: "  bobbin config show",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, origins, err := p.loadServerSettings(cmd)
			return errors.Join(p.printSettings(origins), err)
		},
	})
}

// maxColumnValue is the longest value, in bytes, that printSettings aligns. Longer ones would
// push all origins to the right.
const maxColumnValue = 48

func (p *program) printSettings(list []config.Origin) error {
	if p.json {
		return p.printJSON(core.Page[config.Origin]{Items: append([]config.Origin{}, list...)})
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	for _, s := range list {
		gap := "\t"
		if len(s.Value) > maxColumnValue {
			gap = "  "
		}
		fmt.Fprintf(w, "%s\t%s%s%s\n", s.Key, s.Value, gap, term.Line(s.From, 0))
	}
	return w.Flush()
}
