package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/core"
	"bobbin/app/ops"
)

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
				page, err := s.Audit(ctx, q)
				if err != nil {
					return err
				}
				return printList(p, page, list[core.AuditEntry]{
					none: "no entries yet", titles: "TIME|WHO|WHAT|OWNER|TARGET|DETAILS",
					cells: func(e core.AuditEntry) []any {
						return []any{e.CreatedAt, e.Actor, e.Action, e.Owner, e.Target, auditDetails(e)}
					},
					next: "audit",
				})
			})
		},
	}
	p.withJSON(cmd)
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "maximum number of entries, 1 to 200 (default: 50)")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "continue an earlier list")
	return cmd
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
