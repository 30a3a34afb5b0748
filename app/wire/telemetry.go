package wire

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
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
		o.NATS = func() telemetry.NATS { return telemetry.NATS(joined.Stats()) }
	}
	t := telemetry.New(o)
	d.Feed.Observe(t)
	endpoint := d.Config.Telemetry.OTLPEndpoint
	if !telemetry.TracesWanted(endpoint, os.Getenv) {
		return t, nil
	}
	return t, t.Trace(ctx, telemetry.TraceOptions{Endpoint: endpoint, Env: os.Getenv, Version: build.Version, Logger: d.Logger})
}

// Bounds of the time to send the last traces: the grace period, within these. A
// receiver that is gone does not hold the process up.
const (
	minSendTime = time.Second
	maxSendTime = 5 * time.Second
)

// Flush sends the last traces. What cannot be sent is no failure of the stop.
func Flush(ctx context.Context, cfg config.Config, t *telemetry.Telemetry, log *slog.Logger) {
	within := min(max(cfg.Limits.ShutdownGrace, minSendTime), maxSendTime)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		log.WarnContext(ctx, "last traces not sent", "err", err)
	}
}

// otherLabel is the label of what the configuration does not name.
const otherLabel = "other"

// Labels are the names of models, agents and tools in metrics: those that the
// configuration names have their own. Safe for concurrent use.
type Labels struct {
	current atomic.Pointer[configured]
}

// configured is what the configuration names.
type configured struct {
	models  map[string]bool
	catalog *agents.Catalog
	tools   *tools.Set

	definitions map[string]bool // of tools, by name
}

// NewLabels returns labels that know no names until Set.
func NewLabels() *Labels {
	l := &Labels{}
	l.current.Store(&configured{})
	return l
}

// Set takes the names of the settings and of the agents as they are now.
func (l *Labels) Set(cfg config.Config, m Models, a Agents) {
	c := &configured{models: map[string]bool{}, catalog: a.Catalog, tools: a.Tools, definitions: map[string]bool{}}
	for _, agent := range a.Catalog.List() {
		for _, definition := range agent.Definitions {
			c.definitions[definition.Name] = true
		}
	}
	for _, name := range append(m.Names(), m.calledNames(cfg, a.Catalog.List())...) {
		c.models[name] = true
	}
	delete(c.models, "")
	l.current.Store(c)
}

// modelLabel returns a model's name in metrics. Messages of earlier settings may name any
// model, so those that the configuration does not name share the label of their row in the
// built-in table, with a star: gpt-4o*.
func (l *Labels) modelLabel(name string) string {
	if l.current.Load().models[name] {
		return name
	}
	if row, ok := tokens.Lookup(name); ok {
		return row.Name + "*"
	}
	return otherLabel
}

// agentLabel returns an agent's name in metrics. A session may have an agent that is no longer
// configured.
func (l *Labels) agentLabel(name string) string {
	if c := l.current.Load().catalog; c != nil {
		if _, err := c.Get(name); err == nil {
			return name
		}
	}
	return otherLabel
}

// toolLabel returns a tool's name in metrics: a model may call any name.
func (l *Labels) toolLabel(name string) string {
	if set := l.current.Load().tools; set != nil {
		if _, ok := set.Find(core.Agent{}, name); ok {
			return name
		}
	}
	if definition, _, _ := strings.Cut(name, core.ToolSeparator); l.current.Load().definitions[definition] {
		return definition // a server may give its tools any names
	}
	return otherLabel
}
