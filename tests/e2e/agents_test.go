package e2e_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/cli"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/app/core/contextwindow"
	"bobbin/tests/apptest"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
	"bobbin/tests/seed"
)

// The ways in which a smaller model comes to answer.
const (
	byFallback = "fallback"
	byMessage  = "message"
	bySession  = "session"
)

// switching is a conversation of an agent whose model has 128K and whose fallback has 8K.
type switching struct {
	*apptest.Bobbin
	large, small *provider.Server
	down         atomic.Bool // the large model is
	counts       bool        // the policy has triggers of its own, whose summaries are made after answers
	id           core.SessionID
}

func newSwitching(t *testing.T, policy string) *switching {
	t.Helper()
	w := &switching{small: apptest.NewProvider(t, provider.Options{Window: 8_192, Record: true}), counts: policy == "budget" || policy == "sliding"}
	w.large = apptest.NewProvider(t, provider.Options{Window: 128_000, Record: true, Fault: func(rw http.ResponseWriter, a provider.Asked) bool {
		if !w.down.Load() || a.Summary {
			return false
		}
		rw.Header().Set("Retry-After", "7200") // longer than anybody waits
		http.Error(rw, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, http.StatusTooManyRequests)
		return true
	}})
	file := fmt.Sprintf("name: asked\nsystem_prompt: You answer.\nmodel: large\nfallback_models: [small]\ncontext: {policy: %q}\n", policy)
	w.Bobbin = apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("large", 128_000, 4096, w.large), apptest.WithModel("small", 8_192, 1024, w.small), apptest.WithAgent("asked", file))
	w.id = apptest.NewSession(t, w.Client, ops.NewSession{Agent: "asked"})
	return w
}

// say has the question answered by the small model in one of the ways, or by the large
// one (""), and returns how many of the facts the prompt has word for word.
func (w *switching) say(t *testing.T, how, question string, facts []string) int {
	t.Helper()
	w.down.Store(how == byFallback)
	m, server := core.SendMessage{SessionID: w.id, Content: question}, w.large
	model := ""
	switch how {
	case byFallback:
		server = w.small
	case byMessage:
		m.Model, server = "small", w.small
	case bySession:
		model, server = "small", w.small
	}
	if how == bySession || session(t, w.Client, w.id).Model != "" {
		must.Get(client.Call(t.Context(), w, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: w.id}, SessionPatch: core.SessionPatch{Model: &model, Force: true}}))(t)
	}
	events := apptest.SendMessage(t, w.Client, m).Events
	prompts := server.Prompts()
	if w.counts {
		w.awaitDue(t, events[len(events)-1].Seq)
	}
	text, n := strings.Join(prompts[len(prompts)-1], "\n"), 0
	for _, fact := range facts {
		if strings.Contains(text, fact) {
			n++
		}
	}
	return n
}

// awaitDue waits until no summary is due after the run whose last event is given: the next prompt would go without one
// that is being made.
func (w *switching) awaitDue(t *testing.T, last int64) {
	t.Helper()
	for {
		plan := must.Get(client.Call(t.Context(), w, ops.PlanContext, ops.Plan{InSession: ops.InSession{SessionID: w.id}}))(t)
		if plan.Summarize == nil || plan.Summarize.When == core.WhenAhead {
			return
		}
		for e, err := range w.WatchSession(t.Context(), w.id, core.Cursor{After: last}) {
			must.Do(t, err)
			if last = max(last, e.Seq); e.Type == core.EventContextCompleted && e.Seq > 0 {
				break
			}
		}
	}
}

// 128K → 8K → 128K, by a fallback, by a message and by the session's own model, under
// every policy, in random orders: what the large model's prompts would have word for word
// if no smaller one had ever answered, they have.
func TestShowFallback(t *testing.T) {
	t.Parallel()
	fig := apptest.NewTable("Facts word for word in prompts of the model of 128K, of %d, after a model of 8K answered in between", toldFacts())
	fig.AddRow("policy", "8K answers by", "on 8K", "after each", "without any switch", "prompt", "summaries asked for", "without any switch")
	presets := contextwindow.PresetNames()
	for _, policy := range presets[:apptest.ChooseSize(1, len(presets))] {
		for n := range apptest.ChooseSize(1, 3) {
			draw := seed.Fixed(uint64(n), 5)
			var order []string
			for _, k := range draw.Perm(3) {
				order = append(order, []string{byFallback, byMessage, bySession}[k])
			}
			w := newSwitching(t, policy)
			got, want := w.talk(t, order), newSwitching(t, policy).talk(t, []string{"", "", ""})
			fig.AddRow(policy, strings.Join(order, ", "), got.small, got.large, want.large, got.used, got.summaries, want.summaries)
			for i := range got.large {
				if got.large[i] < want.large[i] && (i == 0 || !w.counts) { // else the second switch crosses its own triggers
					t.Errorf("%s: after the switch by %s the prompt has %d facts word for word, %d without any switch", policy, order[i], got.large[i], want.large[i])
				}
			}
		}
	}
	fig.Log(t)
}

// remembered is what the prompts of a conversation had.
type remembered struct {
	small, large []int // facts in the prompts of the small model, and in those of the large one after each
	used         int   // tokens of the last prompt
	summaries    int64 // that models were asked for
}

// toldFacts is how many facts are told, about 600 tokens each: more than the small model has room for.
func toldFacts() int { return apptest.ChooseSize(14, 24) }

// talk tells the facts, then has the next questions answered by the small model and by the
// large one in turns.
func (w *switching) talk(t *testing.T, order []string) (r remembered) {
	t.Helper()
	words := apptest.NewWriter(7)
	var facts []string
	for i := range toldFacts() {
		facts = append(facts, fmt.Sprintf("The code of locker %d is %d.", i, 1000+i*i))
		w.say(t, "", facts[i]+" "+words.Sentences(40), nil)
	}
	for _, how := range order {
		r.small = append(r.small, w.say(t, how, "Which code has locker 4?", facts))
		r.large = append(r.large, w.say(t, "", "And locker 5, then?", facts))
	}
	report := must.Get(client.Call(t.Context(), w, ops.GetContext, ops.InSession{SessionID: w.id}))(t)
	r.used, r.summaries = report.Used, w.large.Summaries()+w.small.Summaries()
	return r
}

// A session is not changed to a model that cannot hold the system prompt, the tools and
// the pinned messages, unless somebody insists; a conversation that is merely long can
// be summarized for it.
func TestSwitchToAModelThatIsTooSmall(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("large", 32_000, 2048, p), apptest.WithModel("nano", 2048, 256, p),
		apptest.WithAgent("wordy", "name: wordy\nsystem_prompt: "+strings.Repeat("You never forget a rule. ", 400)+"\n"),
		apptest.WithAgent("nanny", "name: nanny\nmodel: nano\nsystem_prompt: "+strings.Repeat("You never forget a rule. ", 400)+"\n"))
	wordy := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "wordy"})
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: wordy, Content: "hello"})

	nano, large, title := "nano", "large", "still here"
	_, err := client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Title: &title}})
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, "the largest part is the system prompt")
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, `"force": true`)
	plan, err := client.Call(t.Context(), h, ops.PlanContext, ops.Plan{InSession: ops.InSession{SessionID: wordy}, PlanPreview: core.PlanPreview{Model: nano}})
	if err != nil || plan.Fits || session(t, h.Client, wordy).Model != "" || session(t, h.Client, wordy).Title == title {
		t.Errorf("got the dry run %+v, %v and the session %+v, want it as it was", plan.Floor, err, session(t, h.Client, wordy))
	}
	compare.Equal(t, "the model by force", nano, must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Force: true}}))(t).Model)
	compare.Error(t, "the same model again is not checked", nil, compare.ErrorOf(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &nano, Title: &title}})))
	if got := apptest.ReadTurn(t, apptest.Send(t.Context(), h, core.SendMessage{SessionID: wordy, Content: "and now?"})); got.Run.Error == nil || got.Run.Error.Code != "context_floor" {
		t.Errorf("got the run's error %+v, want that nothing can be sent", got.Run.Error)
	}
	compare.Error(t, "back to a large model", nil, compare.ErrorOf(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: wordy}, SessionPatch: core.SessionPatch{Model: &large}})))

	nanny, none := apptest.NewSession(t, h.Client, ops.NewSession{Agent: "nanny", Model: large}), ""
	_, err = client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: nanny}, SessionPatch: core.SessionPatch{Model: &none}})
	wantProblem(t, err, core.ErrContextFloor, http.StatusUnprocessableEntity, "the largest part is the system prompt")

	long := apptest.NewSession(t, h.Client, ops.NewSession{})
	bringIn(t, h.Client, long, core.ImportLines, history(200))
	compare.Error(t, "a long conversation", nil, compare.ErrorOf(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: long}, SessionPatch: core.SessionPatch{Model: &nano}})))
	_, err = client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: ops.InSession{SessionID: core.NewID[core.SessionID]()}, SessionPatch: core.SessionPatch{Model: &nano}})
	wantProblem(t, err, core.ErrNotFound, http.StatusNotFound, "does not exist")
}

// The dry run with another agent is what the next message sends after the switch: with its prompt, tools and
// policy, and with the message's files.
func TestPlanOfAnotherAgent(t *testing.T) {
	t.Parallel()
	p := apptest.NewProvider(t, provider.Options{})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("large", 32_000, 2048, p), apptest.WithAgent("terse", "name: terse\nsystem_prompt: Be terse.\ntools: []\n"),
		apptest.WithAgent("armed", "name: armed\nsystem_prompt: "+strings.Repeat("You never forget a rule. ", 100)+"\ntools: [calculator, current_time]\ncontext: {policy: sliding}\n"))
	in := ops.InSession{SessionID: apptest.NewSession(t, h.Client, ops.NewSession{Agent: "terse"})}
	apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: in.SessionID, Content: "hello"})
	file, content := upload(t, h.Client, "notes.txt", []byte(strings.Repeat("The pump is loud. ", 200))), "Read this."
	plan := func(agent string, parts ...ops.FilePart) core.ContextPlan {
		return must.Get(client.Call(t.Context(), h, ops.PlanContext, ops.Plan{InSession: in, PlanPreview: core.PlanPreview{Agent: agent, Content: content}, Parts: parts}))(t)
	}
	part := ops.FilePart{BlobID: file.BlobID}
	planned := plan("armed", part)
	if bare, before := plan("armed"), plan("", part); planned.Tokens < bare.Tokens+800 || planned.Tokens < before.Tokens+500 || planned.Context.Policy != "sliding" {
		t.Errorf("got %d tokens by the policy %s, %d without the file and %d by the present agent", planned.Tokens, planned.Context.Policy, bare.Tokens, before.Tokens)
	}
	compare.Equal(t, "the session's agent", "terse", session(t, h.Client, in.SessionID).Agent)
	must.Get(client.Call(t.Context(), h, ops.UpdateSession, ops.SessionPatch{InSession: in, SessionPatch: core.SessionPatch{Agent: new("armed")}}))(t)
	run := apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: in.SessionID, Content: content, Parts: []core.Part{file}}).Run
	compare.Equal(t, "tokens of the prompt", planned.Tokens, reported(t, h.Client, run.ID).Used)
}

// An operator edits agents' files and reloads them: a run at work keeps the agent that it
// began with, the next one has the new one, and a broken file keeps its agent and says where
// it is broken. Nobody but the operator can reload.
func TestReloadAgents(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}, 10), make(chan struct{})
	model := apptest.NewProvider(t, provider.Options{Record: true, At: func(p provider.Point, _ provider.Asked) {
		if p == provider.PointTool {
			asked <- struct{}{}
			<-goOn
		}
	}})
	h := apptest.New(t, dbtest.MigratedSQLiteURL(t), apptest.WithModel("small", 32_000, 1000, model), func(c *config.Config) {
		c.Auth.Keys = []config.APIKey{{Name: "ann", Secret: config.NewSecret("ann-s3cret-0123456789")}}
		writeAgent(t, *c, "helper", "You are the OLD helper.")
	})
	ann := h.NewClient("ann-s3cret-0123456789")
	id := apptest.NewSession(t, ann, ops.NewSession{Agent: "helper"})
	atWork := must.Get(apptest.SendAsync(t.Context(), ann, core.SendMessage{SessionID: id, Content: "use the tool"}))(t)
	<-asked

	writeAgent(t, h.Config, "helper", "You are the NEW helper.")
	writeAgent(t, h.Config, "second", "You are the second.")
	code, out, errs := reload(t, h.Config)
	if code != 0 || errs != "" || !strings.Contains(out, "helper.yaml  changed  helper") || !strings.Contains(out, "second.yaml  added    second") {
		t.Errorf("reload: got %d, %q, %q", code, out, errs)
	}
	close(goOn)
	compare.Equal(t, "the run at work", core.RunSucceeded, apptest.ReadTurn(t, ann.WatchRun(t.Context(), atWork.ID, core.Cursor{})).Run.Status)
	apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "hello again"})
	apptest.NewSession(t, ann, ops.NewSession{Agent: "second"})
	compare.Equal(t, "agents of the prompts", []string{"OLD", "OLD", "NEW"}, prompts(model))

	path := filepath.Join(h.Config.AgentsDir, "helper.yaml")
	must.Do(t, os.WriteFile(path, []byte("name: helper\nsystem_prompt: x\ncontext:\n  polcy: budget\n"), 0o600))
	code, out, errs = reload(t, h.Config)
	if code != 1 || !strings.Contains(out, "helper.yaml  broken") || !strings.Contains(errs, path+":4:3: context.polcy is not a known field") {
		t.Errorf("reload of a broken file: got %d, %q, %q", code, out, errs)
	}
	apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "still there?"})
	if got := prompts(model); got[len(got)-1] != "NEW" {
		t.Errorf("after a broken file the prompt was of %v, want the agent as it was", got)
	}
	compare.Equal(t, "reload with an API key", http.StatusForbidden, status(compare.ErrorOf(client.Call(t.Context(), ann, ops.ReloadAgents, struct{}{}))))
	h.Stop()
	if code, _, errs := reload(t, h.Config); code != 1 || !strings.Contains(errs, "no server is running on") {
		t.Errorf("reload without a server: got %d, %q", code, errs)
	}
}

// writeAgent writes an agent's file.
func writeAgent(t *testing.T, c config.Config, name, prompt string) {
	t.Helper()
	text := "name: " + name + "\nsystem_prompt: " + prompt + "\ntools: [calculator]\n"
	must.Do(t, errors.Join(os.MkdirAll(c.AgentsDir, 0o700), os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte(text), 0o600)))
}

// changeAgent writes an agent's file anew and reloads it.
func changeAgent(t *testing.T, c config.Config, name, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(filepath.Join(c.AgentsDir, name+".yaml"), []byte(text), 0o600))
	if code, out, errs := reload(t, c); code != 0 {
		t.Fatalf("reload: %d, %s%s", code, out, errs)
	}
}

// reload runs bobbin agents reload.
func reload(t *testing.T, c config.Config) (code int, out, errs string) {
	t.Helper()
	empty := filepath.Join(t.TempDir(), "bobbin.yaml")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	var stdout, stderr bytes.Buffer
	code = cli.Main(t.Context(), []string{"agents", "reload", "--config", empty, "--data-dir", c.DataDir}, cli.Streams{In: os.Stdin, Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// prompts returns which helper each prompt was of.
func prompts(model *provider.Server) []string {
	var out []string
	for _, r := range model.Received() {
		for _, word := range []string{"OLD", "NEW"} {
			if strings.Contains(strings.Join(r.System, " "), word) {
				out = append(out, word)
			}
		}
	}
	return out
}
