package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

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
				if p.json {
					return p.printJSON(page)
				}
				return p.printAudit(page)
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

func (p *program) printAudit(page core.Page[core.AuditEntry]) error {
	if len(page.Items) == 0 {
		fmt.Fprintln(p.Out, "no entries yet")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tWHO\tWHAT\tOWNER\tTARGET\tDETAILS")
	for _, e := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", formatTime(&e.CreatedAt, ""), term.Line(e.Actor, 0), e.Action, term.Line(e.Owner, 0), term.Line(e.Target, 0), auditDetails(e))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	p.printMore(page.NextCursor, "audit")
	return nil
}
