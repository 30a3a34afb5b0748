package e2e_test

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bobbin/app/api/ops"
	"bobbin/app/cli"
	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/core/config"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/provider"
)

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
	if run := apptest.ReadTurn(t, ann.WatchRun(t.Context(), atWork.ID, core.Cursor{})).Run; run.Status != core.RunSucceeded {
		t.Errorf("the run at work: got %s (%+v)", run.Status, run.Error)
	}
	apptest.SendMessage(t, ann, core.SendMessage{SessionID: id, Content: "hello again"})
	apptest.NewSession(t, ann, ops.NewSession{Agent: "second"})
	if got, want := prompts(model), []string{"OLD", "OLD", "NEW"}; !slices.Equal(got, want) {
		t.Errorf("the prompts were of the agents %v, want %v", got, want)
	}

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
	if _, err := client.Call(t.Context(), ann, ops.ReloadAgents, struct{}{}); status(err) != http.StatusForbidden {
		t.Errorf("reload with an API key: got %v, want 403", err)
	}
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
