package cli

import (
	"context"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"bobbin/app/ops"
)

// withAdmin calls do with the service for keys, the audit log and deliveries. It works on the
// database directly, whether a server runs or not.
func (p *program) withAdmin(cmd *cobra.Command, do func(context.Context, *ops.Service) error) error {
	cfg, logger, err := p.loadWithLogger(cmd)
	if err != nil {
		return err
	}
	return ops.Admin(cmd.Context(), cfg, logger, func(s *ops.Service) error { return do(cmd.Context(), s) })
}

// currentActor returns the user of the command line, for the audit log.
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
