package core

import (
	"context"
	"time"
)

// SlackInstallationState says whether the tokens of an installation work.
type SlackInstallationState string

// The states of an installation.
const (
	SlackInstalled SlackInstallationState = "active"
	SlackRevoked   SlackInstallationState = "revoked" // Slack says that the app was removed, or its tokens revoked
)

// SlackInstallation is a workspace of Slack, or all workspaces of an organization, in which the
// app was installed by OAuth.
type SlackInstallation struct {
	Team       string // id of the workspace, or of the organization
	Enterprise string // the organization of the workspace; empty = none
	Name       string
	App        string
	BotUser    string
	Owner      string // of the sessions
	Scopes     string // separated by commas
	Tokens     []byte // sealed; nil when revoked
	State      SlackInstallationState
	ExpiresAt  *time.Time // of the bot token; nil = never
	CreatedAt  time.Time
	UpdatedAt  time.Time
}

// SlackInstallationStore stores installations. Their tokens tell versions of a row apart: each
// sealing is different.
type SlackInstallationStore interface {
	// Save stores an installation, in the place of an earlier one of the team.
	Save(ctx context.Context, i SlackInstallation) error
	// Find returns the active installation of the team, else that of its organization;
	// ErrNotFound if there is none.
	Find(ctx context.Context, enterprise, team string) (SlackInstallation, error)
	// Lease leases an installation to rotate its tokens; false if another caller has the lease, or
	// the installation has other tokens by now.
	Lease(ctx context.Context, i SlackInstallation, d time.Duration) (bool, error)
	// Rotate replaces the tokens, their expiry and the scopes, and ends the lease; ErrStale if
	// the installation has other tokens than old by now.
	Rotate(ctx context.Context, old []byte, i SlackInstallation) error
	// Revoke marks an installation revoked and removes its tokens, unless it has other tokens by now.
	Revoke(ctx context.Context, i SlackInstallation) error
}
