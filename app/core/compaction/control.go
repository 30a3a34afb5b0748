package compaction

import (
	"bobbin/app/core"
	"bobbin/app/core/contextwindow"
)

// Inspector answers questions about a session's context (where a message is, what another
// model would change, how a summary came about) and edits and restores summaries. It plans
// with its Compactor, so its answers match what happens. Safe for concurrent use.
type Inspector struct {
	keeper *Compactor
	stores InspectorStores
}

// InspectorStores are the repositories that an Inspector needs besides the Compactor's. All are
// required.
type InspectorStores struct {
	Messages  core.MessageStore
	Summaries core.SummaryStore
	Sessions  core.SessionStore
	// Preset returns a policy preset with the settings that all agents share.
	Preset func(name string) (contextwindow.Policy, error)
}

// NewInspector returns an Inspector over the keeper.
func NewInspector(keeper *Compactor, stores InspectorStores) *Inspector {
	return &Inspector{keeper: keeper, stores: stores}
}
