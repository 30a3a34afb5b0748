package cli_test

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/datadir"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// fields are the names of a JSON object's fields.
func fields(t *testing.T, text string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%q is no JSON object: %v", text, err)
	}
	return v
}

// Beside a server whose secrets this command has not, doctor says which ones it needs, and fails
// nothing: a healthy server has them.
func TestDoctorWithoutTheServersSecrets(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	held := must.Get(datadir.Hold(t.Context(), flags[3]))(t)
	start := datadir.StartOptions{Settings: map[string]string{"nats.cluster_addr": "127.0.0.1:0"}, Secrets: []string{"BOBBIN_NATS_SECRET"}}
	must.Do(t, held.Announce(datadir.Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Start: start}))
	t.Cleanup(func() { _ = held.Release() })
	out := says(t, flags, 0, "doctor", "warn  configuration: the server has BOBBIN_NATS_SECRET in its environment, and this command has not")
	compare.True(t, !strings.Contains(out, "fail"), "doctor: got %q, want a warning that names the secret", out)
	// The secret alone, which is no setting without the server's others, is not looked at either.
	file := filepath.Join(t.TempDir(), "b.yaml")
	must.Do(t, os.WriteFile(file, []byte("nats: {secret: 0123456789abcdef0123456789abcdef}\n"), 0o600))
	if out := says(t, flags, 0, "doctor --config "+file); strings.Contains(out, "fail") {
		t.Errorf("doctor with the secret: got %q, want no failure", out)
	}
	says(t, flags, 1, "agents list", "run it with the server's environment")
}

// Beside a server with secrets that doctor has not, it names them, and does not say that there are no keys.
func TestDoctorNamesTheServersSecrets(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	held := must.Get(datadir.Hold(t.Context(), flags[3]))(t)
	start := datadir.StartOptions{Settings: map[string]string{"agents_dir": flags[5]}, Secrets: []string{"BOBBIN_AUTH_KEYS", "BOBBIN_SLACK_BOT_TOKEN"}}
	must.Do(t, held.Announce(datadir.Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Start: start}))
	t.Cleanup(func() { _ = held.Release() })
	_, out, errs := run(t, "", append([]string{"doctor"}, flags...)...)
	const names = "BOBBIN_AUTH_KEYS, BOBBIN_SLACK_BOT_TOKEN"
	if !strings.Contains(out, "warn  configuration: the server has "+names) || strings.Contains(out, "only this machine has access") || !strings.Contains(errs, "without its "+names) {
		t.Errorf("got %q, %q, want a warning that names the secrets", out, errs)
	}
}

// A tool's variable that this command has not may be in the environment of the server that runs.
func TestDoctorWithoutAToolsVariable(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	toolsDir := filepath.Join(filepath.Dir(flags[5]), "tools")
	must.Do(t, os.MkdirAll(toolsDir, 0o700))
	must.Do(t, os.WriteFile(filepath.Join(toolsDir, "shop.yaml"), []byte("name: shop\nkind: http\nurl: https://shop.example/\ndescription: d\nbearer: BOBBIN_TEST_NOT_SET\n"), 0o600))
	held := must.Get(datadir.Hold(t.Context(), flags[3]))(t)
	start := datadir.StartOptions{Settings: map[string]string{"tools.allow": "http", "agents_dir": flags[5]}}
	must.Do(t, held.Announce(datadir.Server{URL: "http://127.0.0.1:1", PID: os.Getpid(), Start: start}))
	t.Cleanup(func() { _ = held.Release() })
	says(t, flags, 0, "doctor", "BOBBIN_TEST_NOT_SET is not set\n", "the server may have it")
}

// Every check says what to do, and a failed one ends with 1.
func TestDoctor(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	doctor := append([]string{"doctor", "--addr", "127.0.0.1:0"}, flags...)
	code, out, errs := run(t, "", doctor...)
	if code != 0 || errs != "" || !strings.Contains(out, "warn  model: demo") || !strings.Contains(out, "→ set OPENAI_API_KEY") || !strings.Contains(out, "api keys: none") || !strings.Contains(out, "everything works") {
		t.Errorf("before the first start: %d, %q, %q", code, out, errs)
	}
	succeed(t, flags, "hello", "chat")
	succeed(t, flags, "", "keys create web")
	data := flags[3]
	must.Do(t, os.Chmod(data, 0o755))
	must.Do(t, os.MkdirAll(flags[5], 0o700))
	must.Do(t, os.WriteFile(filepath.Join(flags[5], "bad.yaml"), []byte("nme: x\n"), 0o600))
	says(t, flags, 1, "doctor --addr 127.0.0.1:0", "ok    database", "sound", "ok    migrations: version", "ok    api keys: 1 in the database", "chmod 700 "+data, "fail  agents: ", "bad.yaml:1", "something does not work")
	// A damaged file is found.
	must.Do(t, os.WriteFile(filepath.Join(data, "bobbin.db"), []byte(strings.Repeat("this is no database ", 1000)), 0o600))
	code, out, _ = run(t, "", append(doctor, "--json")...)
	compare.True(t, code == 1 && fields(t, out)["status"] == "fail" && strings.Contains(out, `"check": "database"`), "a damaged database: %d, %s", code, out)
}

func TestDoctorOfWrongSettings(t *testing.T) {
	t.Parallel()
	says(t, folder(t), 1, "doctor --log-level loud", "fail  configuration: --log-level: log.level")
}

// With --json everything that lists or reports is one document, errors too.
func TestJSON(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	succeed(t, flags, "my name is Ada", "chat")
	do := func(args string) map[string]any { return fields(t, succeed(t, flags, "", args+" --json")) }
	items, _ := do("sessions list")["items"].([]any)
	must.True(t, len(items) == 1, "sessions list: %v", items)
	first, _ := items[0].(map[string]any)
	id, _ := first["id"].(string)
	for _, tt := range []struct{ args, field string }{
		{"sessions show " + id, "messages"},
		{"sessions purge " + id + " --dry-run", "tables"},
		{"search Ada", "items"},
		{"runs list " + id, "items"},
		{"config show", "items"},
		{"agents show quick", "items"},
		{"version", "version"},
		{"migrate --status", "newest"},
		{"keys list", "items"},
		{"keys new web", "setting"},
		{"keys create web --scopes read --expires 90d", "secret"},
		{"keys revoke web", "revoked_at"},
		{"audit", "items"},
		{"doctor --addr 127.0.0.1:0", "checks"},
	} {
		got := do(tt.args)
		compare.True(t, got[tt.field] != nil, "%s --json has no field %s: %v", tt.args, tt.field, got)
	}
	for args, code := range map[string]string{"sessions show 123": "not_found", "sessions shw": "invalid", "sessions list --limit many": "invalid", "api getRun id=x": "not_found"} {
		exit, out, errs := run(t, "x", append(append(strings.Fields(args), "--json"), flags...)...)
		if got := fields(t, errs); exit != 1 || out != "" || got["code"] != code || got["detail"] == "" || got["type"] != "urn:bobbin:problem:"+code {
			t.Errorf("%s --json: got %d, %q, %v, want a problem with the code %s", args, exit, out, got, code)
		}
	}
	gone := do("sessions purge " + id + " --yes")
	compare.True(t, gone["compacted"] == true, "purge: %v", gone)
}

// A purge is not done without a yes, and says what it would do and what it did.
func TestPurgeAsks(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	succeed(t, flags, "my name is Ada", "chat")
	id := firstID.FindString(succeed(t, flags, "", "sessions list"))
	for _, tt := range []struct {
		code int
		args string
		says string
	}{
		{1, "sessions purge", "no sessions given"},
		{1, "sessions purge x", "session x does not exist"},
		{1, "sessions purge --archived-before yesterday", `"yesterday" is not a date`},
		{0, "sessions purge --archived-before 2000-01-01", "nothing to remove"},
		{1, "sessions purge " + id, "use --yes, or --dry-run"},
		{0, "sessions purge --dry-run " + id, "TO REMOVE"},
		{1, "users purge", "which user?"},
		{1, "users purge nobody", `there is no data of the user "nobody": check the name and --owner`},
		{0, "sessions purge --no-compact -y " + id, "a purge with compaction removes them"},
		{1, "sessions show " + id, "does not exist"},
	} {
		says(t, flags, tt.code, tt.args, tt.says)
	}
}

// Shells complete the ids of a running server's sessions and the names of agents.
func TestCompletion(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	complete := func(args ...string) string {
		t.Helper()
		_, out, _ := run(t, "", append(append([]string{"__complete"}, flags...), args...)...)
		return out
	}
	out := complete("sessions", "show", "")
	compare.True(t, strings.HasPrefix(out, ":"), "without a server: %q", out)
	if out := complete("chat", "qu"); !strings.HasPrefix(out, "quick\t") {
		t.Errorf("agents: %q", out)
	}
	defer serve(t, flags)()
	succeed(t, flags, "hello", "chat")
	id := firstID.FindString(succeed(t, flags, "", "sessions list"))
	for _, args := range [][]string{{"sessions", "show", id[:5]}, {"chat", "--session", ""}, {"sessions", "purge", ""}, {"sessions", "purge", "x", id[:3]}, {"search", "--session", ""}, {"sessions", "export", ""}} {
		out := complete(args...)
		compare.True(t, strings.HasPrefix(out, id), "complete %q: %q, want %s", args, out, id)
	}
	for says, args := range map[string][]string{
		"quick\t": {"ask", "--agent", ""}, ", succeeded, hello\n": {"runs", "show", ""}, "coding\n": {"eval", "context", "--sample", ""}, "all\n": {"eval", "context", "--policy", ""},
		"json\njsonl\nmarkdown\n": {"sessions", "export", id, "--format", ""}, "user\nassistant\n": {"search", "--role", ""}, "newest\n": {"search", "--sort", ""},
		"debug\ninfo\n": {"serve", "--log-level", ""}, "text\njson\n": {"serve", "--log-format", ""},
	} {
		compare.Contains(t, fmt.Sprintf("complete %q", args), says, complete(args...))
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if code, out, _ := run(t, "", "completion", shell); code != 0 || !strings.Contains(out, "__complete") {
			t.Errorf("completion %s: %d, %.80q", shell, code, out)
		}
	}
}

// Of a run's id the beginning is enough, if no other recent one begins with it.
func TestBeginningOfARunsID(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	succeed(t, flags, "hello", "chat")
	call(t, flags, 0, "again", "chat", "--last")
	session := firstID.FindString(succeed(t, flags, "", "sessions list"))
	newest := firstID.FindString(succeed(t, flags, "", "runs list "+session))
	if out := succeed(t, flags, "", "runs show "+strings.ToUpper(newest[:23])); !strings.Contains(out, newest) || !strings.Contains(out, "again") {
		t.Errorf("runs show %s: got %q, want the run %s", newest[:23], out, newest)
	}
	if _, errs := call(t, flags, 1, "", "runs", "cancel", "0"); !strings.Contains(errs, "2 run ids begin with 0") || !strings.Contains(errs, newest+"  20") {
		t.Errorf("runs cancel 0: got %q, want both runs", errs)
	}
}

// Who opens a server to other machines without a key in sight is told so, and how to
// make one.
func TestServeNeedsKeys(t *testing.T) {
	t.Parallel()
	says(t, folder(t), 1, "serve --addr 0.0.0.0:0", "0.0.0.0:0 can be reached from other machines, and there are no API keys; make one with: bobbin keys create")
}

// Who looks at settings and keys sees columns, what to take, and which key never expires.
func TestListsAreReadable(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	code, out, errs := run(t, "", append([]string{"config", "show"}, flags...)...)
	line := regexp.MustCompile(`(?m)^addr.*$`).FindString(out)
	compare.True(t, code == 0 && line != "" && len(line) <= 120, "config show: %d, %q, the first line is %q: want columns that fit a terminal", code, errs, line)
	says(t, nil, 0, "keys --help", "If in\ndoubt, use create.")
	for args, warns := range map[string]bool{"keys create forever": true, "keys create short --expires 90d": false} {
		out := succeed(t, flags, "", args)
		compare.True(t, strings.Contains(out, "it never expires: whoever finds it can use it until it is revoked; use --expires 90d") == warns, "%s: got %q, want a warning that it never expires: %t", args, out, warns)
	}
	out = succeed(t, flags, "", "keys list")
	if strings.Count(out, "valid") != 2 || !strings.Contains(out, "EXPIRES") || !strings.Contains(out, "never") || strings.Contains(out, "until") {
		t.Errorf("keys list: %q, want states and days in columns of their own", out)
	}
}

// The audit log has what a server found changed at its start, and nothing if nothing has changed.
func TestAuditOfStarts(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	serve(t, flags)()
	serve(t, flags)()
	serve(t, append(slices.Clone(flags), "--limits-queued-runs", "7"))()
	compare.Equal(t, "audit: want two starts", 2, strings.Count(says(t, flags, 0, "audit", `limits.queued_runs: "7", was ""`), "config.changed"))
}

// A backup is whole and checked, for its owner only, writes over nothing, and leaves nothing behind where it fails.
func TestBackup(t *testing.T) {
	t.Parallel()
	flags := append(folder(t), "--addr", "127.0.0.1:0")
	file := filepath.Join(t.TempDir(), "copy.db")
	says(t, flags, 1, "backup "+file, "there is no database to copy")
	succeed(t, flags, "", "migrate")
	says(t, flags, 0, "backup "+file, "verified, schema version")
	code, out, errs := run(t, "", append([]string{"backup", file + "2", "--json"}, flags...)...)
	if info, err := os.Stat(file + "2"); code != 0 || err != nil || info.Mode().Perm() != 0o600 || fields(t, out)["bytes"] != float64(info.Size()) {
		t.Errorf("as JSON: got %d, %q, %q, %v", code, out, errs, err)
	}
	for name, why := range map[string]string{file: "exists", filepath.Join(filepath.Dir(file), "nowhere", "copy.db"): ""} {
		says(t, flags, 1, "backup "+name, why)
	}
	compare.Equal(t, "files: want the two backups alone", 2, len(must.Get(os.ReadDir(filepath.Dir(file)))(t)))
}

// users export writes a whole archive to a file, and no bytes to a terminal or to nowhere.
func TestExportUser(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	file := filepath.Join(t.TempDir(), "ada.zip")
	for _, tt := range []struct {
		code int
		args string
		says string
	}{
		{1, "users export", "which user?"},
		{1, "users export ada", "choose where to write the archive"},
		{0, "api createMemory content=tea user_id=ada", ""},
		{0, "users export ada -o " + file, "bytes in " + file},
		{1, "users export ada --owner web -o " + file, `the owner "web" has no data of the user "ada"`},
		{0, "users export ada -o -", "counts.json"},
	} {
		says(t, flags, tt.code, tt.args, tt.says)
	}
	archive := must.Get(zip.OpenReader(file))(t)
	defer archive.Close()
	var names []string
	for _, f := range archive.File {
		names = append(names, f.Name)
	}
	want := []string{"export.json", "messages_elsewhere.jsonl", "memories.jsonl", "files.jsonl", "usage.jsonl", "keys.jsonl", "counts.json"}
	compare.True(t, slices.Equal(names, want), "archive has %v, want %v", names, want)
}
