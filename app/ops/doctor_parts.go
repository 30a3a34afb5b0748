package ops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"bobbin/app/agents"
	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/app/core/datadir"
	"bobbin/app/core/llm"
	"bobbin/app/core/llm/openai"
	"bobbin/app/core/llm/providerhttp"
	"bobbin/app/core/tokens"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/app/slack"
	"bobbin/app/wire"
)

// maxSkew is how far the database's clock may be from ours without a word.
const maxSkew = 2 * time.Second

// checkDatabase checks the database, if there is one already.
func (d *doctor) checkDatabase(ctx context.Context) {
	address := d.Config.Database.URL
	if path, embedded := wire.SQLiteFile(d.Config); embedded {
		if dir := filepath.Dir(path); dir != filepath.Clean(d.Config.DataDir) { // of that one is said already
			d.checkRoom("disk of the database", dir)
		}
		if _, err := os.Stat(path); err != nil {
			d.addOK("database", "%s will be created at the first start", address)
			return
		}
	}
	if db.IsUnverified(address.Reveal()) {
		d.addWarning("database connection", "nothing proves that PostgreSQL answers: "+wire.UnverifiedDatabase, wire.VerifyDatabase)
	}
	ctx, cancel := context.WithTimeout(ctx, inspectTime)
	defer cancel()
	database, err := db.Open(ctx, address.Reveal(), d.Logger)
	if err != nil {
		d.addFailure("database", core.ShownMessage(err, err.Error()), "check database.url")
		return
	}
	defer func() { _ = database.Close() }() // it was only a check
	health, err := database.Inspect(ctx)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.addWarning("database", "the check takes longer than "+inspectTime.String(), "run PRAGMA quick_check with the sqlite3 program when there is time")
	case err != nil:
		d.addFailure("database", core.ShownMessage(err, err.Error()), "check database.url")
		return
	case health.Damage != "":
		d.addFailure("database", "it is damaged: "+health.Damage, "stop Bobbin and go back to the last backup; sqlite3's .recover saves what can be saved")
	case health.ReadOnly:
		d.addFailure("database", "PostgreSQL is read-only: nothing can be stored", "name the primary in database.url, and all hosts of a cluster: Bobbin takes the one that takes writes")
	case health.Skew.Abs() > maxSkew:
		d.addWarning("database", fmt.Sprintf("its clock is %s from this machine's", health.Skew.Round(time.Millisecond)), "let both follow the same time server")
	default:
		d.addOK("database", "%s, %s, sound", address, health.Version)
	}
	d.checkReplicaName(ctx, database)
	if !d.checkMigrations(ctx, database) {
		return
	}
	keys, err := repositories.NewAPIKeys(database.Gorm).List(ctx)
	if err != nil {
		d.addFailure("api keys", core.ShownMessage(err, err.Error()), "")
		return
	}
	for _, k := range keys {
		if k.Valid(time.Now()) {
			d.stored++
		}
	}
	if d.slack, err = repositories.NewSlackInstallations(database.Gorm).List(ctx); err != nil {
		d.addFailure("slack", core.ShownMessage(err, err.Error()), "")
	}
}

func (d *doctor) checkSlack(ctx context.Context) {
	if !d.Config.Slack.Enabled() {
		return
	}
	for _, f := range slack.Check(ctx, d.Config.Slack, d.slack, d.Address) {
		status := VerdictOK
		if f.Do != "" {
			status = VerdictFail
		}
		d.found = append(d.found, Finding{"slack " + f.Check, status, f.Detail, f.Do})
	}
}

// checkReplicaName checks that no other process has the name of this replica.
func (d *doctor) checkReplicaName(ctx context.Context, database *db.DB) {
	name := cmp.Or(d.Config.Replica.Name, datadir.WorkerOf(d.Config.DataDir))
	_, running := datadir.Running(d.Config.DataDir)
	if name == "" || running || database.Dialect() != "postgres" {
		return // not made yet, or the server's that runs here
	}
	if err := db.CheckReplicaName(ctx, database, name); err != nil {
		d.addWarning("replica", fmt.Sprintf("the name %s: %v", name, err), "give each process its own replica.name, or data_dir: they do not share work, but do not take their own over at once after a crash")
		return
	}
	d.addOK("replica", "%s: no other process has this name", name)
}

// checkMigrations checks the version of the schema, and reports whether it is the newest.
func (d *doctor) checkMigrations(ctx context.Context, database *db.DB) bool {
	v, err := database.MigrationStatus(ctx)
	switch {
	case err != nil:
		d.addFailure("migrations", core.ShownMessage(err, err.Error()), "")
	case v.Check() != nil:
		d.addFailure("migrations", v.Check().Error(), "")
	case v.Pending():
		d.addWarning("migrations", fmt.Sprintf("the database is at version %d of %d", v.Current, v.Target), "the next start brings it up to date, or: bobbin migrate")
	default:
		d.addOK("migrations", "version %d, the newest", v.Current)
		return true
	}
	return false
}

// checkTokenKeys checks that the keys of end users' tokens can be had.
func (d *doctor) checkTokenKeys(ctx context.Context) {
	const check = "tokens of end users"
	j := d.Config.Auth.JWT
	if !j.Enabled() {
		return
	}
	keys, from, do := wire.NewTokenKeys(j, d.Logger), "auth.jwt.jwks_url", "look at the address, and whether this machine reaches it; end users cannot come without the keys"
	if j.JWKSFile != "" {
		from, do = "auth.jwt.jwks_file", "write the public keys of who signs the tokens there, as a JWKS"
	}
	if err := keys.Load(ctx); err != nil {
		d.addFailure(check, fmt.Sprintf("%s: %v", from, err), do)
		return
	}
	usable, skipped := keys.About()
	if len(skipped) > 0 {
		d.addWarning(check, fmt.Sprintf("of the keys %d cannot be used: %s", len(skipped), strings.Join(skipped, "; ")), "nothing, if no token is signed with them")
	}
	if strings.HasPrefix(j.JWKSURL, "http:") && j.AllowHTTP {
		d.addWarning(check, "the keys come by http: who can change them on their way can make tokens", "use https")
	}
	d.addOK(check, "%d keys: %s", len(usable), strings.Join(usable, ", "))
}

// checkModels checks the models, and the agents that name them.
func (d *doctor) checkModels(ctx context.Context) {
	m, err := wire.OpenModels(ctx, d.Config, wire.ModelOptions{Counter: tokens.NewCounter(), Logger: d.Logger})
	if err != nil {
		d.addFailure("model", core.ShownMessage(err, err.Error()), "check models")
		return
	}
	d.checkModel(ctx, m, "model", m.Choice.Model)
	if name := d.Config.ContextSummaryModel; name != "" {
		d.checkModel(ctx, m, "summary model", name)
	}
	for _, name := range m.Names() {
		if name != m.Choice.Model && name != d.Config.ContextSummaryModel {
			d.checkModel(ctx, m, "model "+name, name)
		}
	}
	if embedder, _, err := wire.OpenEmbedder(d.Config, m, d.Logger); err != nil {
		d.addFailure("embeddings", core.ShownMessage(err, err.Error()), "check embedding_model")
	} else {
		d.addOK("embeddings", "%s", wire.DescribeEmbedder(embedder))
	}
	loaded, err := wire.LoadAgents(d.Config, wire.NewTools(d.Config, wire.ToolParts{}), m)
	if err != nil {
		for _, line := range strings.Split(err.Error(), "\n") {
			d.addFailure("agents", line, "")
		}
		return
	}
	if _, err := loaded.Catalog.Get(d.Config.DefaultAgent); err != nil {
		d.addFailure("agents", "default_agent: "+core.ShownMessage(err, err.Error()), "")
		return
	}
	usable := 0
	for _, agent := range loaded.Catalog.List() {
		if d.checkAgent(m, agent) {
			usable++
		}
	}
	if n := len(loaded.Catalog.List()); usable == 0 {
		d.addFailure("agents", fmt.Sprintf("none of %d can be used", n), "make one of their models usable")
	} else {
		d.addOK("agents", "%d, of which %d can be used", n, usable)
	}
	d.agentModels(ctx, m, loaded.Catalog.List())
	d.checkTools(ctx, loaded)
}

// checkModel checks one model: that it can be used and, where it has an address of its
// own, that somebody is there.
func (d *doctor) checkModel(ctx context.Context, m wire.Models, check, name string) {
	entry, err := m.Resolve(name)
	var model llm.Model
	if err == nil {
		model, err = m.Get(name)
	}
	if err != nil {
		d.addFailure(check, core.ShownMessage(err, err.Error()), "")
		return
	}
	if entry.Provider == llm.ProviderDemo {
		do := "set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY, or run Ollama, for a real model"
		if name == m.Choice.Model {
			d.addWarning(check, "demo: no language model, it only quotes and calculates ("+m.Choice.Reason+")", do)
		}
		return
	}
	if !d.Call {
		found := askForModels(ctx, entry)
		if found.Check = check; name == m.Choice.Model {
			found.Detail += " (" + m.Choice.Reason + ")"
		}
		d.found = append(d.found, found)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	begin := time.Now()
	var usage core.Usage
	for delta, err := range model.Stream(ctx, llm.Request{
		System: []string{"Answer with one word."}, Messages: []llm.Message{{Role: core.RoleUser, Content: "Say ok."}}, MaxOutputTokens: 64,
	}) {
		if err != nil {
			d.addFailure(check, fmt.Sprintf("%s does not answer: %v", name, err), "check its key, its name, its base_url and the provider's status page")
			return
		}
		if delta.Usage != nil {
			usage = *delta.Usage
		}
	}
	d.addOK(check, "%s answers, in %d ms, for %d + %d tokens", name, time.Since(begin).Milliseconds(), usage.InputTokens, usage.OutputTokens)
}

// askForModels asks the server of a model which models it has, and returns what it found. Servers that do not speak
// OpenAI's dialect only have to be there.
func askForModels(ctx context.Context, e llm.Entry) Finding {
	ok := Finding{Status: VerdictOK, Detail: fmt.Sprintf("%s of %s, window %d", e.Name, e.Provider, e.Window)}
	base := strings.TrimRight(cmp.Or(e.BaseURL, openai.BaseURL(e.Provider)), "/")
	if base == "" {
		return ok
	}
	ctx, cancel := context.WithTimeoutCause(ctx, reachTime, fmt.Errorf("no list of models within %s", reachTime))
	defer cancel()
	names, err := providerhttp.Options{Provider: e.Provider, BaseURL: base, APIKey: os.Getenv(e.APIKeyEnv)}.ListModels(ctx)
	isListed := func(name string) bool { return path.Base(name) == path.Base(e.Model) || name == e.Model+":latest" }
	wrong := func(v Verdict, do, format string, args ...any) Finding {
		return Finding{Status: v, Detail: e.Name + ": " + fmt.Sprintf(format, args...), Do: do}
	}
	switch {
	case ctx.Err() != nil, err != nil && llm.AsError(err).Status == http.StatusForbidden: // some keys may not list models
		return wrong(VerdictWarn, "try it with --call", "it was not found whether it works: %v", err)
	case llm.IsKind(err, llm.KindNetwork):
		return wrong(VerdictFail, "start it, or correct its base_url", "no server answers: %v", err)
	case slices.Contains([]string{llm.ProviderAnthropic, llm.ProviderBedrock, llm.ProviderVertex, llm.ProviderLangchainOllama}, e.Provider):
	case llm.IsKind(err, llm.KindAuth):
		return wrong(VerdictFail, "correct the key, or set api_key_env", "the server does not accept the key: %v", err)
	case err != nil:
		return wrong(VerdictWarn, "correct its base_url, which usually ends in /v1; if its server has no such list, try it with --call",
			"%s/models is no list of models: %v", llm.Redacted(base), err)
	case len(names) > 0 && !slices.ContainsFunc(names, isListed):
		return wrong(VerdictWarn, "correct its name, unless the server takes any", "its server does not list %s; it has %s", e.Model, core.Literal(core.Clip(strings.Join(names, ", "), 200)))
	}
	return ok
}

// checkTools checks the tools that files describe: that their variables are set, and with Call that
// they can be loaded.
func (d *doctor) checkTools(ctx context.Context, loaded wire.Agents) {
	files, _ := agents.CheckFiles(nil, loaded.Known) // they have been read just before
	for _, f := range files {
		if f.Off != "" {
			d.addWarning("tool "+f.Tool.Name, "it is left out: "+f.Off, "")
		}
	}
	definitions := loaded.Catalog.Definitions()
	listed := make([]ToolSource, len(definitions))
	if d.Call {
		listed = listTools(ctx, loaded.Tools, definitions)
		for _, agent := range loaded.Catalog.List() {
			if n := countTools(agent, listed); n > core.MaxTools && countTools(agent, nil) <= core.MaxTools {
				d.addWarning("agent "+agent.Name, tools.TooMany(n), "")
			}
		}
	}
	for i, definition := range definitions {
		for _, note := range append(agents.ToolWarnings(definition), listed[i].Notes...) {
			d.addWarning("tool "+definition.Name, note, "")
		}
		problem, remedy := listed[i].Problem, "agents answer without it until this is corrected"
		if err := tools.Environment(os.Getenv).Check(definition); err != nil {
			problem = cmp.Or(problem, err.Error())
			if _, running := datadir.Running(d.Config.DataDir); running {
				remedy = "this command has not what it needs, and the server may have it: run doctor with the server's environment"
			}
		}
		if problem != "" {
			d.addWarning("tool "+definition.Name, problem, remedy)
			continue
		}
		asked := ""
		if !d.Call && definition.Kind == core.ToolMCP {
			asked = "; its tools are not listed without --call"
		}
		d.addOK("tool "+definition.Name, "%s, %s%s", definition.Kind, definition.File, asked)
	}
}

// checkAgent checks that the agent's model can be used, and reports whether it can.
func (d *doctor) checkAgent(m wire.Models, agent core.Agent) bool {
	s := agentState(m, agent, "")
	switch {
	case s.Usable:
		d.addOK("agent "+s.Agent, "model %s", s.Model)
	case s.Agent == d.Config.DefaultAgent:
		d.addFailure("agent "+s.Agent, "sessions that name no agent cannot be used: "+s.Reason, "")
	default:
		d.addWarning("agent "+s.Agent, "messages to it are refused: "+s.Reason, "")
	}
	for _, warning := range s.Warnings {
		d.addWarning("agent "+s.Agent, warning, "")
	}
	return s.Usable
}

// agentModels checks the models that only agents name, for answers or summaries, and that each
// has a price where dollars are limited.
func (d *doctor) agentModels(ctx context.Context, m wire.Models, list []core.Agent) {
	checked := append(m.Names(), m.Choice.Model, d.Config.ContextSummaryModel)
	for _, name := range m.ConfiguredNames(d.Config, list) {
		if _, err := m.Resolve(name); err != nil {
			continue // the line of the agent says so
		}
		if !slices.Contains(checked, name) {
			checked = append(checked, name)
			d.checkModel(ctx, m, "model "+name, name)
		}
	}
	if keys := wire.DollarLimited(d.Config); len(keys) > 0 {
		for _, name := range m.Unpriced(d.Config, list) {
			d.addWarning("prices", fmt.Sprintf("%s has no price: it is refused to %s (usd_per_day)", name, strings.Join(keys, ", ")),
				"set input_price and output_price in models, or limit tokens_per_day")
		}
	}
}
