package compaction_test

import (
	"bobbin/app/core"
	"bobbin/app/core/compaction"
	"bobbin/app/core/contextwindow"
)

// control returns an Inspector over the world's keeper.
func (w *world) control() *compaction.Inspector {
	return compaction.NewInspector(w.keeper, compaction.InspectorStores{
		Messages: w.db.Messages, Summaries: w.db.Summaries, Sessions: w.db.Sessions, Preset: preset,
	})
}

// preset is a policy without global settings.
func preset(name string) (contextwindow.Policy, error) {
	return contextwindow.Resolve(contextwindow.Global{}, core.ContextSettings{Policy: name})
}
