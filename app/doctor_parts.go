package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/folder"
)

// maxSkew is how far the database's clock may be from ours without a word.
const maxSkew = 2 * time.Second

// database checks the database, if there is one already.
func (d *doctor) database(ctx context.Context) {
	address := d.Config.Database.URL
	if path, embedded := strings.CutPrefix(address.Reveal(), "sqlite://"); embedded {
		if _, err := os.Stat(path); err != nil {
			d.ok("database", "%s will be made at the first start", address)
			return
		}
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	database, err := db.Open(ctx, address.Reveal(), d.Logger)
	if err != nil {
		d.fail("database", sentence(err), "look at database.url")
		return
	}
	defer func() { _ = database.Close() }() // only looked
	health, err := database.Inspect(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.warn("database", "the check takes longer than "+inspectTime.String(), "run PRAGMA quick_check with the sqlite3 program when there is time")
	case err != nil:
		d.fail("database", sentence(err), "look at database.url")
		return
	case health.Damage != "":
		d.fail("database", "it is damaged: "+health.Damage, "stop Bobbin and go back to the last backup; sqlite3's .recover saves what can be saved")
	case health.Skew.Abs() > maxSkew:
		d.warn("database", fmt.Sprintf("its clock is %s from this machine's", health.Skew.Round(time.Millisecond)), "let both follow the same time server")
	default:
		d.ok("database", "%s, %s, sound", address, health.Version)
	}
	d.migrations(ctx, database)
	d.name(ctx, database)
	d.storedKeys(ctx, database)
}

// storedKeys counts the keys that open something.
func (d *doctor) storedKeys(ctx context.Context, database *db.DB) {
	if v, err := database.MigrationStatus(ctx); err != nil || v.Pending() {
		return // the other checks say so
	}
	keys, err := repositories.NewAPIKeys(database.Gorm).List(ctx)
	if err != nil {
		d.fail("api keys", sentence(err), "")
		return
	}
	for _, k := range keys {
		if k.Valid(time.Now()) {
			d.stored++
		}
	}
}

// keys says who may come in.
func (d *doctor) keys() {
	plain := 0
	for _, k := range d.Config.Auth.Keys {
		if !k.Hashed() {
			plain++
		}
	}
	set := len(d.Config.Auth.Keys)
	switch {
	case plain > 0:
		d.warn("api keys", fmt.Sprintf("%d of %d keys are set in plain", plain, set), "bobbin keys new <name> makes keys whose setting is a hash")
	case set+d.stored == 0:
		d.ok("api keys", "none: only this machine may call")
	default:
		d.ok("api keys", "%d in the database, %d in the settings, all by their hashes", d.stored, set)
	}
}

// name checks that no other process has the name of this replica.
func (d *doctor) name(ctx context.Context, database *db.DB) {
	name := cmp.Or(d.Config.Replica.Name, folder.WorkerOf(d.Config.DataDir))
	_, running := folder.Running(d.Config.DataDir)
	if name == "" || running || database.Dialect() != "postgres" {
		return // not made yet, or the server's that runs here
	}
	held, err := holdName(ctx, database, name, "doctor")
	if err != nil {
		d.warn("replica", fmt.Sprintf("the name %s: %v", name, err), "give each process its own replica.name, or data_dir: they do not share work, but do not take their own over at once after a crash")
		return
	}
	_ = held.Close() // only looked
	d.ok("replica", "%s: no other process has this name", name)
}

// replicas checks how replicas talk to each other.
func (d *doctor) replicas() {
	if n := d.Config.NATS; n.InTheClear() {
		d.warn("nats", "what replicas tell each other by "+n.ClusterAddr+" is not encrypted",
			"set nats.tls_ca, nats.tls_cert and nats.tls_key, or keep it in a network that you trust")
	}
}

func (d *doctor) migrations(ctx context.Context, database *db.DB) {
	v, err := database.MigrationStatus(ctx)
	switch {
	case err != nil:
		d.fail("migrations", sentence(err), "")
	case v.Current > v.Target:
		d.fail("migrations", fmt.Sprintf("the database is at version %d, this program knows versions up to %d", v.Current, v.Target), "use a newer bobbin")
	case v.Pending():
		d.warn("migrations", fmt.Sprintf("the database is at version %d of %d", v.Current, v.Target), "the next start brings it up to date, or: bobbin migrate")
	default:
		d.ok("migrations", "version %d, the newest", v.Current)
	}
}

// tokens checks that the keys of end users' tokens can be had.
func (d *doctor) tokens(ctx context.Context) {
	const check = "tokens of end users"
	j := d.Config.Auth.JWT
	if !j.Enabled() {
		return
	}
	keys, from, do := newTokenKeys(j, d.Logger), "auth.jwt.jwks_url", "look at the address, and whether this machine reaches it; end users cannot come without the keys"
	if j.JWKSFile != "" {
		from, do = "auth.jwt.jwks_file", "write the public keys of who signs the tokens there, as a JWKS"
	}
	if err := keys.Load(ctx); err != nil {
		d.fail(check, fmt.Sprintf("%s: %v", from, err), do)
		return
	}
	usable, skipped := keys.About()
	if len(skipped) > 0 {
		d.warn(check, fmt.Sprintf("of the keys %d cannot be used: %s", len(skipped), strings.Join(skipped, "; ")), "nothing, if no token is signed with them")
	}
	if strings.HasPrefix(j.JWKSURL, "http:") && j.AllowHTTP {
		d.warn(check, "the keys come by http: who can change them on their way can make tokens", "use https")
	}
	d.ok(check, "%d keys: %s", len(usable), strings.Join(usable, ", "))
}

// models checks the models, and the agents that name them.
func (d *doctor) models(ctx context.Context) {
	a := &App{cfg: d.Config, log: d.Logger}
	var err error
	if a.counter, err = tokens.NewCounter(); err == nil {
		err = a.openRegistry(ctx)
	}
	if err != nil {
		d.fail("model", sentence(err), "look at models")
		return
	}
	d.model(ctx, a, "model", a.choice.Model)
	if name := d.Config.ContextSummaryModel; name != "" {
		d.model(ctx, a, "summary model", name)
	}
	for _, name := range a.models.Names() {
		if name != a.choice.Model && name != d.Config.ContextSummaryModel {
			d.model(ctx, a, "model "+name, name)
		}
	}
	if a.embedder, err = a.openEmbedder(); err != nil {
		d.fail("embeddings", sentence(err), "look at embedding_model")
	} else {
		d.ok("embeddings", "%s", a.Embedding())
	}
	d.agents(a)
}

// model checks one model: that it can be used and, where it has an address of its
// own, that somebody is there.
func (d *doctor) model(ctx context.Context, a *App, check, name string) {
	entry, err := a.models.Resolve(name)
	if err != nil {
		d.fail(check, sentence(err), "")
		return
	}
	if entry.Provider == "demo" {
		do := "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or run Ollama, for a real one"
		if name == a.choice.Model {
			d.warn(check, "demo: no language model, only a few rules ("+a.choice.Reason+")", do)
		}
		return
	}
	if host := hostOf(entry.BaseURL); host != "" {
		if err := reachable(ctx, host); err != nil {
			d.fail(check, fmt.Sprintf("%s: nobody answers at %s", entry.Name, host), "start it, or correct its base_url")
			return
		}
	}
	detail := fmt.Sprintf("%s of %s, window %d", entry.Name, entry.Provider, entry.Window)
	if name == a.choice.Model {
		detail += " (" + a.choice.Reason + ")"
	}
	if !d.Call {
		d.ok(check, "%s", detail)
		return
	}
	d.call(ctx, a, check, name)
}

// call asks the model for one word.
func (d *doctor) call(ctx context.Context, a *App, check, name string) {
	m, err := a.models.Get(name)
	if err != nil {
		d.fail(check, sentence(err), "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := time.Now()
	var usage core.Usage
	for delta, err := range m.Stream(ctx, llm.Request{
		System: []string{"Answer with one word."}, Messages: []llm.Message{{Role: core.RoleUser, Content: "Say ok."}}, MaxOutputTokens: 64,
	}) {
		if err != nil {
			d.fail(check, fmt.Sprintf("%s does not answer: %v", name, err), "check its key, its name and the provider's status page")
			return
		}
		if delta.Usage != nil {
			usage = *delta.Usage
		}
	}
	d.ok(check, "%s answers, in %d ms, for %d + %d tokens", name, time.Since(begin).Milliseconds(), usage.InputTokens, usage.OutputTokens)
}

// hostOf returns host and port of an address; "" if it has none.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	port := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	return net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), port))
}

func reachable(ctx context.Context, host string) error {
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return err
	}
	return conn.Close()
}

// agents checks the agents' files.
func (d *doctor) agents(a *App) {
	set, err := newTools(d.Config, time.Now, nil, nil)
	if err != nil {
		d.fail("agents", sentence(err), "")
		return
	}
	catalog, err := loadAgents(d.Config, set, globalContext(d.Config, false), a.models)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			d.fail("agents", line, "")
		}
		return
	}
	if _, err := catalog.Get(d.Config.DefaultAgent); err != nil {
		d.fail("agents", "default_agent: "+sentence(err), "")
		return
	}
	var names []string
	for _, agent := range catalog.List() {
		names = append(names, agent.Name)
	}
	d.ok("agents", "%d: %s", len(names), strings.Join(names, ", "))
}
