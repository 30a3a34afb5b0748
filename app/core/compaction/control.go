package compaction

import (
	"context"

	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Control answers what people ask of a session's context (where a message is, what
// another model would change, how a summary became what it is) and changes the
// summary as they wish. It plans with its Keeper: what it says is what happens.
// Safe for concurrent use.
type Control struct {
	keeper *Keeper
	stores ControlStores
}

// ControlStores are what a Control needs besides the Keeper's. All are required.
type ControlStores struct {
	Messages  messageFinder
	Summaries versionStore
	Sessions  restorer
	Policies  presetSource
}

// messageFinder finds any message of a session, on whatever branch, deleted or not.
type messageFinder interface {
	Get(ctx context.Context, scope core.Scope, session core.SessionID, id core.MessageID) (core.Message, error)
}

// versionStore finds versions of summaries.
type versionStore interface {
	Get(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error)
	// Before returns the newest version before the given one whose words are there.
	Before(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error)
	// Restorable is Get with the reason why the version cannot be restored.
	Restorable(ctx context.Context, scope core.Scope, id core.SessionID, version int) (core.Summary, error)
	// Loops returns the notes on tool loops that are in use once the cursor is there.
	Loops(ctx context.Context, scope core.Scope, id core.SessionID, after int64) ([]core.Summary, error)
	// FirstCovering returns the first version that covered a seq of the path; 0 = none.
	FirstCovering(ctx context.Context, scope core.Scope, id core.SessionID, seq int64) (int, error)
}

// restorer makes an earlier version the active one.
type restorer interface {
	RestoreSummary(ctx context.Context, scope core.Scope, in core.SummaryRestore) (core.Session, []core.Event, error)
}

// presetSource knows the presets of policies with the settings that all agents share.
type presetSource interface {
	Preset(name string) (contextwindow.Policy, error)
}

// NewControl returns a Control over the keeper.
func NewControl(keeper *Keeper, stores ControlStores) *Control {
	return &Control{keeper: keeper, stores: stores}
}
