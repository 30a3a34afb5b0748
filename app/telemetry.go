package app

import (
	"context"
	"os"
	"time"

	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/events"
	"bobbin/app/telemetry"
)

// newTelemetry returns what counts everything that this Bobbin does, and sends traces
// of it where that is asked for.
func (a *App) newTelemetry(ctx context.Context, build Build) (*telemetry.Telemetry, error) {
	known := tokens.NewModels(a.log)
	o := telemetry.Options{
		Build:    telemetry.Build{Version: build.Version, Commit: build.Commit, Go: build.Go},
		Database: a.database.Pool(),
		Labels: telemetry.Labels{
			Model: func(name string) string { return a.modelLabel(known, name) },
			Agent: a.agentLabel,
			Tool:  a.toolLabel,
		},
		Queued:       a.repos.runs.Queue,
		Undelivered:  a.repos.deliveries.Stats,
		Calibrations: func() map[string]tokens.Estimate { return a.ruler.Estimates() },
	}
	if joined, ok := a.bus.(*events.NATS); ok {
		o.NATS = func() telemetry.NATS { return telemetry.NATS(joined.Stats()) }
	}
	t := telemetry.New(o)
	a.feed.Observe(t)
	a.flush = a.sender(ctx, t)
	endpoint := a.cfg.Telemetry.OTLPEndpoint
	if !telemetry.TracesWanted(endpoint, os.Getenv) {
		return t, nil
	}
	return t, t.Trace(ctx, telemetry.TraceOptions{Endpoint: endpoint, Env: os.Getenv, Version: build.Version, Logger: a.log})
}

// Bounds of the time to send the last traces: the grace period, within these. A
// receiver that is gone does not hold the process up.
const (
	leastSendTime = time.Second
	mostSendTime  = 5 * time.Second
)

// sender returns what sends the last traces. What cannot be sent is no failure of the
// stop.
func (a *App) sender(ctx context.Context, t *telemetry.Telemetry) func() {
	within := min(max(a.cfg.Limits.ShutdownGrace, leastSendTime), mostSendTime)
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
		defer cancel()
		if err := t.Close(ctx); err != nil {
			a.log.WarnContext(ctx, "last traces not sent", "err", err)
		}
	}
}

// otherLabel is the label of what the configuration does not name.
const otherLabel = "other"

// modelLabel returns a model's name in metrics. A message may name any model that its
// provider may have, so only those that the configuration names have their own; others
// share that of their row in the built-in table, with a star: gpt-4o*.
func (a *App) modelLabel(known *tokens.Models, name string) string {
	if a.named[name] {
		return name
	}
	if row, ok := known.Lookup(name); ok {
		return row.Name + "*"
	}
	return otherLabel
}

// agentLabel returns an agent's name in metrics. A session may have an agent that is
// not configured any more.
func (a *App) agentLabel(name string) string {
	if _, err := a.catalog.Get(name); err != nil {
		return otherLabel
	}
	return name
}

// toolLabel returns a tool's name in metrics: a model may call what it likes.
func (a *App) toolLabel(name string) string {
	if _, ok := a.toolset.Lookup(name); !ok {
		return otherLabel
	}
	return name
}

// namedModels returns the names of the models that the configuration names, or that
// stand for a provider's cheap one.
func (a *App) namedModels() map[string]bool {
	named := map[string]bool{a.choice.Model: true, a.cfg.ContextSummaryModel: true}
	for _, name := range a.models.Names() {
		named[name] = true
	}
	add := func(setting *string) {
		if setting != nil {
			named[*setting] = true
		}
	}
	for _, agent := range a.catalog.List() {
		named[agent.Model] = true
		for _, name := range agent.FallbackModels {
			named[name] = true
		}
		add(agent.Context.SummaryModel)
		add(agent.Compaction.SummaryModel)
	}
	for name := range named {
		if entry, err := a.models.Resolve(name); err == nil {
			named[llm.CheapModel(entry.Provider)] = true
		}
	}
	delete(named, "")
	return named
}
