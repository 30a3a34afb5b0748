package purge

import (
	"context"
	"encoding/json"

	"bobbin/app/core"
)

// act is what was done, to whose things and to which.
type act struct{ action, owner, target string }

// note tells the audit log what was removed, whole or up to an error. It names neither
// sessions nor users, as these are gone. What is done is done: an entry that cannot be
// stored is in the server's log.
func (s *Service) note(ctx context.Context, what act, gone core.Purged, cut error) {
	if cut != nil && len(gone.Removed)+len(gone.Emptied) == 0 {
		return // nothing was done
	}
	ctx = context.WithoutCancel(ctx)
	details, err := json.Marshal(map[string]any{"removed": gone.Removed, "emptied": gone.Emptied, "complete": cut == nil})
	if err == nil {
		err = s.Audit.Add(ctx, core.AuditEntry{
			ID: core.NewID[core.AuditID](), CreatedAt: core.Now(), Actor: actor, Action: what.action,
			Owner: what.owner, Target: what.target, Details: details,
		})
	}
	if err != nil {
		s.Logger.ErrorContext(ctx, "purge not noted in the audit log", "action", what.action, "err", err)
	}
}

// actor is who purges: only the command line can ask for it.
const actor = "cli"

// hidden is how a user is named who is to be forgotten: who knows the id can find the
// entry, and who does not learns nothing.
func hidden(user string) string { return "user sha256:" + core.SecretHash(user)[:12] }
