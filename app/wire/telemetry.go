package wire

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/tokens"
	"bobbin/app/events"
	"bobbin/app/telemetry"
)

// NewTelemetry returns what counts everything that this process does, and sends traces
// where the settings ask for them. Estimates returns how models count.
func NewTelemetry(ctx context.Context, d Deps, build telemetry.Build, estimates func() map[string]tokens.Estimate) (*telemetry.Telemetry, error) {
	o := telemetry.Options{
		Build: build, Database: d.Database.Pool(), Labels: telemetry.Labels{Model: d.Labels.modelLabel, Agent: d.Labels.agentLabel, Tool: d.Labels.toolLabel},
		Queued: d.Stores.Runs.Queue, Undelivered: d.Stores.Deliveries.Stats, SlackBehind: d.Stores.SlackThreads.CountBehind, Calibrations: estimates,
	}
	if joined, ok := d.Bus.(*events.NATS); ok {
		o.NATS = joined.Stats
	}
	t := telemetry.New(o)
	d.Feed.Observe(t)
	endpoint := d.Config.Telemetry.OTLPEndpoint
	if !telemetry.TracesWanted(endpoint, os.Getenv) {
		return t, nil
	}
	return t, t.Trace(ctx, telemetry.TraceOptions{Endpoint: endpoint, Env: os.Getenv, Version: build.Version, Logger: d.Logger})
}

// sendTime is how long the last traces may take: a receiver that is gone does not hold the process up.
const sendTime = 5 * time.Second

// Flush sends the last traces. What cannot be sent is no failure of the stop.
func Flush(ctx context.Context, t *telemetry.Telemetry, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTime)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.WarnContext(ctx, "last traces not sent", "err", err)
	}
}

// Labels are the names of models, agents and tools in metrics: those that the
// configuration names have their own. Safe for concurrent use.
type Labels struct {
	current atomic.Pointer[configured]
}

// configured is what the configuration names, of tools the built-in ones and the definitions.
type configured struct{ models, agents, tools map[string]bool }

// NewLabels returns labels that know no names until Set.
func NewLabels() *Labels {
	l := &Labels{}
	l.current.Store(&configured{})
	return l
}

// Set takes the names of the settings and of the agents as they are now.
func (l *Labels) Set(cfg config.Config, m Models, a Agents) {
	c := &configured{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, agent := range a.Catalog.List() {
		c.agents[agent.Name] = true
		for _, definition := range agent.Definitions {
			c.tools[definition.Name] = true
		}
	}
	for _, name := range a.Tools.Names() {
		c.tools[name] = true
	}
	for _, name := range append(m.Names(), m.calledNames(cfg, a.Catalog.List())...) {
		c.models[name] = true
	}
	delete(c.models, "")
	l.current.Store(c)
}

// modelLabel returns a model's own name if the settings name it. Messages may name any, which share the label of
// their row in the built-in table, with a star: gpt-4o*.
func (l *Labels) modelLabel(name string) string {
	if row, known := tokens.Lookup(name); known && !l.current.Load().models[name] {
		return row.Name + "*"
	}
	return labelIn(l.current.Load().models, name)
}

func (l *Labels) agentLabel(name string) string { return labelIn(l.current.Load().agents, name) }

// toolLabel returns the definition of a tool that has one: a server may give its tools any names.
func (l *Labels) toolLabel(name string) string {
	definition, _, _ := strings.Cut(name, core.ToolSeparator)
	return labelIn(l.current.Load().tools, definition)
}

// labelIn returns the name, which may be anybody's, as a label if it is known.
func labelIn(known map[string]bool, name string) string {
	if known[name] {
		return name
	}
	return "other"
}
