package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bobbin/app/admin"
	"bobbin/app/cli/term"
	"bobbin/app/core"
)

func (p *program) audit() *cobra.Command {
	var q core.PageQuery
	cmd := &cobra.Command{
		Use: "audit", Short: "What operators did: keys, purges, backups, changed settings, deliveries",
		Long: "Lists what operators did, the newest first: keys made and revoked, sessions and users purged, sessions\n" +
			"that retention removed, backups made, deliveries made again, and the settings that a server found\n" +
			"changed at its start. No secret is in it, and no user: of a purged one there\nis the beginning of the SHA-256 of the id, so that who knows the id can find it.",
		Example: "  bobbin audit --json --limit 200",
		Args:    noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return p.withAdmin(cmd, func(ctx context.Context, s *admin.Service) error {
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
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "entries, 1 to 200 (default 50)")
	cmd.Flags().StringVar(&q.Cursor, "cursor", "", "next_cursor of the page before")
	return cmd
}

// brief returns the details of an entry without what every start repeats.
func brief(e core.AuditEntry) string {
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
		fmt.Fprintln(p.Out, "nothing has been done yet")
		return nil
	}
	w := tabwriter.NewWriter(p.Out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "TIME\tWHO\tWHAT\tOWNER\tTARGET\tDETAILS")
	for _, e := range page.Items {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", day(&e.CreatedAt, ""), e.Actor, e.Action, e.Owner, e.Target, brief(e))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.NextCursor != nil {
		fmt.Fprintf(p.Out, "more: --cursor %s\n", *page.NextCursor)
	}
	return nil
}
