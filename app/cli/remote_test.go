package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"bobbin/app/cli"
	"bobbin/tests/compare"
	"bobbin/tests/golden"
	"bobbin/tests/must"
	"bobbin/tests/process"
)

// remote is a server with a key, and a folder elsewhere from which it is asked.
type remote struct {
	url  string
	file string // with the key
}

func startRemote(t *testing.T) remote {
	t.Helper()
	flags := folder(t)
	agentsOf(t, flags, map[string]string{"careful.yaml": "name: careful\nsystem_prompt: You ask.\ntools: [calculator]\ntool_settings: {calculator: {approval: always}}\n"})
	key := strings.TrimSpace(strings.Split(succeed(t, flags, "", "keys create web --owner ada --scopes read,write,export"), "\n")[1])
	r := remote{file: filepath.Join(t.TempDir(), "key")}
	must.Do(t, os.WriteFile(r.file, []byte(key+"\n"), 0o600))
	out2, ended := lines{make(chan string, 1)}, make(chan int, 1)
	go func() {
		ended <- cli.Main(t.Context(), append([]string{"serve", "--addr", "127.0.0.1:0", "--log-level", "error"}, flags...), cli.Streams{In: os.Stdin, Out: out2, Err: os.Stderr})
	}()
	t.Cleanup(func() { <-ended })
	r.url = <-out2.found
	return r
}

// changing is what differs from run to run.
var changing = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\d{4}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?Z?)?)?|\d+(\.\d+)? ?(ms|µs|s)\b|127\.0\.0\.1:\d+|[\d,]+ bytes`)

// columns are as far apart as what changes is wide.
var columns = regexp.MustCompile(` {2,}`)

// recorder calls the program on a remote server, and records what it says.
type recorder struct {
	remote
	t       *testing.T
	session string // its id is ID in the record
	text    strings.Builder
}

// prefix is how much of the session's id some commands name, in bytes.
const prefix = 24

// call records a command and returns its standard output.
func (r *recorder) call(want int, input string, args ...string) string {
	r.t.Helper()
	out, errs := r.silently(want, input, args...)
	said := strings.NewReplacer(r.session, "ID", r.session[:prefix], "ID").Replace(strings.Join(args, " ")) + "\n" + out + errs
	said = strings.NewReplacer(r.file, "KEYFILE", filepath.Dir(r.file), "FOLDER", "go run -tags nomsgpack .", "go run .").Replace(said)
	r.text.WriteString("$ bobbin " + columns.ReplaceAllString(changing.ReplaceAllString(said, "…"), "  ") + "\n")
	return out
}

// silently calls the program without recording it.
func (r *recorder) silently(want int, input string, args ...string) (out, errs string) {
	r.t.Helper()
	return call(r.t, []string{"--url", r.url, "--key", "@" + r.file}, want, input, args...)
}

// firstID matches the id at the beginning of a list.
var firstID = regexp.MustCompile(`(?m)^[0-9a-f-]{36}`)

// newestSession makes the session that was used last the one of the record.
func (r *recorder) newestSession() {
	r.t.Helper()
	out, _ := r.silently(0, "", "sessions", "list")
	r.session = firstID.FindString(out)
}

// talks records conversations and what they leave behind.
func (r *recorder) talks() {
	r.call(0, "", "sessions", "list")
	if out := r.call(0, "", "ask", "--keep", "my", "name", "is", "Ada"); !strings.Contains(out, "in our conversation now") || strings.Contains(out, "messages in history") {
		r.t.Errorf("ask: got %q, want the answer only", out)
	}
	r.call(0, "What is my name?\n", "ask", "--last")
	r.session = firstID.FindString(r.call(0, "", "sessions", "list"))
	r.call(0, "What is 19 * 23?\n/model\n/context\n", "chat", "--session", r.session[:prefix], "-")
	for _, args := range [][]string{
		{"sessions", "show", r.session}, {"context", r.session},
		{"runs", "list", r.session}, {"search", "name"}, {"api", "getUsage", "group_by=model"}, {"sessions", "export", r.session, "--format", "markdown"},
	} {
		r.call(0, "", args...)
	}
	r.call(0, `{"role":"user","content":"hello"}`, "import", "-", "--title", "imported")
	r.call(0, "hello\n/retry\n/search 19\n/new\nWhat is 2 + 2?\n", "chat", "-")
}

// decides records what becomes of runs that wait for a person, who sees whole arguments before a decision.
func (r *recorder) decides() {
	for _, verb := range []string{"approve", "deny", "cancel"} {
		r.silently(1, "What is "+strings.Repeat("1 + ", 60)+"40?", "chat", "careful")
		r.newestSession()
		out, _ := r.silently(0, "", "runs", "list", r.session)
		id := firstID.FindString(out)
		if verb == "approve" {
			r.call(0, "", "runs", "show", id)
			r.call(1, "", "runs", "deny", id, r.session)
		}
		args := []string{"runs", verb, id}
		if verb == "cancel" {
			args = append(args, "--wait")
		}
		r.call(0, "", args...)
		for ended := verb == "cancel"; !ended && process.Pause(r.t.Context(), 50*time.Millisecond); { // else this session changes last, and is taken for the next one
			out, _ = r.silently(0, "", "runs", "show", id)
			ended = strings.Contains(out, "succeeded")
		}
	}
}

// summarizes records what can be done with a summary.
func (r *recorder) summarizes() {
	input := "my dog is called Rex\n"
	for i := range 6 {
		input += fmt.Sprintf("note %d: the pump in hall three reported a deviation of %d microns again\n", i, 40+i)
	}
	r.silently(0, input+"/summarize\n", "chat", "-")
	r.newestSession()
	r.silently(0, "", "api", "editSummary", "id="+r.session, "content=Rex is a dog.")
	r.call(0, "/summary\n/undo\n/summary list\n", "chat", "--session", r.session, "-")
}

// remembers records memories, and the export of their user.
func (r *recorder) remembers() {
	r.call(0, `{"content": "Ada likes tea", "user_id": "u"}`, "api", "createMemory", "--body", "-")
	r.silently(0, "", "api", "searchMemories", "query=tea", "user_id=u", "limit=1")
	r.call(1, "", "api", "reindexMemories", "all_owners=true") // of all owners: on the server
	r.call(0, "", "users", "export", "u", "-o", filepath.Join(filepath.Dir(r.file), "u.zip"))
}

// All commands that talk to a server do so from another machine, with a key that no
// command line shows; what they said is recorded.
func TestRemoteServer(t *testing.T) {
	t.Parallel()
	r := recorder{remote: startRemote(t), t: t, session: strings.Repeat("-", 36)}
	r.talks()
	r.decides()
	r.summarizes()
	r.remembers()
	r.call(1, "", "sessions", "show", "nothing")
	for _, local := range []string{"keys list", "agents list", "agents show assistant"} {
		r.call(1, "", strings.Fields(local)...)
	}
	// Messages of one speaker have one heading, unless a minute has passed between them.
	again := regexp.MustCompile(`(?m)(^## Assistant · …\n\n(?:[^#\n].*\n|\n)+?)## Assistant · …\n\n`)
	text := again.ReplaceAllString(r.text.String(), "$1")
	golden.Check(t, "testdata/remote.txt", text)
}

// listedCommand matches a command in the help of its parent.
var listedCommand = regexp.MustCompile(`(?m)^  ([a-z]+) `)

// leafCommands returns the commands below a command that do something themselves.
func leafCommands(t *testing.T, parent ...string) []string {
	t.Helper()
	code, out, _ := run(t, "", append(parent, "--help")...)
	must.True(t, code == 0, "%q --help: got %d", parent, code)
	_, rest, isGroup := strings.Cut(out, "Available Commands:\n")
	list, _, _ := strings.Cut(rest, "\n\n")
	leaves := []string{}
	for _, m := range listedCommand.FindAllStringSubmatch(list, -1) {
		leaves = append(leaves, leafCommands(t, append(slices.Clone(parent), m[1])...)...)
	}
	if !isGroup || strings.Contains(out, "bobbin "+strings.Join(parent, " ")+" <") {
		leaves = append(leaves, strings.Join(parent, " "))
	}
	return leaves
}

// Every command is in the record of the remote server, or refuses --url, or needs neither a server
// nor a folder.
func TestEveryCommandIsRecorded(t *testing.T) {
	t.Parallel()
	recorded := must.Get(os.ReadFile(filepath.Join("testdata", "remote.txt")))(t)
	needless := []string{"serve", "completion", "help", "version", "keys new", "slack"}
	for _, leaf := range leafCommands(t) {
		begins := func(command string) bool { return strings.HasPrefix(leaf+" ", command+" ") }
		refuses := func(command string) bool { return strings.HasPrefix(command+" ", leaf+" ") }
		isRecorded := strings.Contains(string(recorded), "\n$ bobbin "+leaf+" ") || strings.Contains(string(recorded), "$ bobbin "+leaf+"\n")
		if !isRecorded && !slices.ContainsFunc(needless, begins) && !slices.ContainsFunc(localCommands, refuses) {
			t.Errorf("%s is neither recorded nor in localCommands", leaf)
		}
	}
}

// What is wrong with an address or a key is said before anything is sent.
func TestRemoteMistakes(t *testing.T) {
	t.Setenv("BOBBIN_KEY", "")
	t.Setenv("EMPTY", "")
	empty := filepath.Join(t.TempDir(), "empty")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"--url", "example.com"}, `looks like https://host or http://host:port, not "example.com"`},
		{[]string{"--url", "https://user:secret@example.com"}, "must not contain a password"},
		{[]string{"--url", "http://127.0.0.1:1", "--key", "bob_secret"}, "--key must be env:NAME or @file: other users of this machine can see"},
		{[]string{"--url", "http://127.0.0.1:1", "--key", "env:EMPTY"}, "the environment variable EMPTY is empty"},
		{[]string{"--url", "http://127.0.0.1:1", "--key", "@/nowhere"}, "--key: open /nowhere: no such file"},
		{[]string{"--url", "http://127.0.0.1:1", "--key", "@" + empty}, empty + " contains no key"},
		{[]string{"--url", "http://127.0.0.1:1"}, "connection refused"},
	} {
		code, _, errs := run(t, "", append([]string{"sessions", "list"}, tt.args...)...)
		compare.True(t, code == 1 && strings.Contains(errs, tt.says) && !strings.Contains(errs, "secret@"), "%q: got %d, %q, want 1 and %q", tt.args, code, errs, tt.says)
	}
}

// localCommands are commands that work on this machine.
var localCommands = []string{
	"keys list", "keys create web", "keys revoke web", "audit", "users purge ada --yes", "sessions purge --archived-before 2026-01-31 --yes",
	"migrate", "search reindex", "doctor", "config show", "backup copy.db", "agents reload",
	"agents list", "agents show assistant", "agents check", "mcp list", "eval context --sample coding",
}

// With a server in the environment no command works on a second database without a word.
func TestServerOfTheEnvironment(t *testing.T) {
	t.Setenv("BOBBIN_URL", "http://127.0.0.1:1")
	t.Chdir(t.TempDir())
	for _, args := range localCommands {
		code, out, errs := run(t, "", strings.Fields(args)...)
		if want := "not on the server of BOBBIN_URL; unset BOBBIN_URL or give --data-dir"; code != 1 || !strings.Contains(out+errs, want) {
			t.Errorf("%q: got %d, %q, %q; want 1 and %q", args, code, out, errs, want)
		}
		code, out, errs = run(t, "", append(strings.Fields(args), "--url", "http://127.0.0.1:1")...)
		if want := "works on this machine and does not accept --url"; code != 1 || !strings.Contains(out+errs, want) {
			t.Errorf("%q with --url: got %d, %q, %q; want 1 and %q", args, code, out, errs, want)
		}
	}
	made := must.Get(os.ReadDir("."))(t)
	compare.True(t, len(made) == 0, "got %v; want nothing in the folder", made)
	flags := folder(t)
	for _, args := range []string{"keys list", "migrate", "sessions list"} {
		if code, _, errs := run(t, "", append(strings.Fields(args), flags...)...); code != 0 {
			t.Errorf("%q with --data-dir: got %d, %q; want the folder that it names", args, code, errs)
		}
	}
	if code, _, errs := run(t, "", "sessions", "list"); code != 1 || !strings.Contains(errs, "connection refused") {
		t.Errorf("sessions list: got %d, %q; want the server of the environment", code, errs)
	}
	serve(t, flags)()
}

// A command that works without a server says on which folder, if that is new or if it talks to an
// agent; an address that it would not use is refused.
func TestCommandsSayWhereTheyWork(t *testing.T) {
	t.Parallel()
	const created, directly = ": created it; for a server elsewhere use --url\n", ": working on it directly\n"
	for _, args := range []string{"sessions list", "search tea", "api getUsage", "ask hello", "chat"} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			flags := folder(t)
			dir := "no server is running on the folder " + flags[3]
			talks := ""
			if args == "ask hello" || args == "chat" {
				talks = dir + directly
			}
			for _, want := range []string{dir + created, talks} {
				if code, _, errs := run(t, "hello", append(strings.Fields(args), flags...)...); code != 0 || errs != want {
					t.Errorf("got %d, %q; want %q", code, errs, want)
				}
			}
			flags = folder(t)
			code, _, errs := run(t, "hello", append(append(strings.Fields(args), "--addr", "127.0.0.1:1"), flags...)...)
			compare.True(t, code == 1 && strings.Contains(errs, "for a server elsewhere use --url http://127.0.0.1:1"), "--addr: got %d, %q; want that --url names a server", code, errs)
			compare.True(t, compare.ErrorOf(os.Stat(flags[3])) != nil, "--addr: got a data folder, want none")
			defer serve(t, flags)()
			if code, _, errs := run(t, "hello", append(append(strings.Fields(args), "--addr", "127.0.0.1:1"), flags...)...); code != 0 || errs != "" {
				t.Errorf("with a server on the folder: got %d, %q; want nothing on the standard error", code, errs)
			}
		})
	}
}

// What a command suggests works on the same folder or server; it never has a key.
func TestSuggestedCommands(t *testing.T) {
	t.Setenv("SOME_KEY", "bob_secret")
	t.Chdir(t.TempDir())
	flags := folder(t)
	flags[3] = filepath.Join(filepath.Dir(flags[3]), "Ada's data")
	suffix := " --config " + flags[1] + " --data-dir '" + strings.ReplaceAll(flags[3], "'", `'\''`) + "'\n"
	history := `{"role":"user","content":"hello"}`
	code, out, errs := run(t, history, append([]string{"import", "-"}, flags...)...)
	compare.True(t, code == 0 && strings.Contains(out, " chat --session ") && strings.HasSuffix(out, suffix), "import: got %d, %q, %q; want the end %q", code, out, errs, suffix)
	r := startRemote(t)
	code, out, errs = run(t, history, "import", "-", "--url", r.url, "--key", "@"+r.file)
	if want := " --url " + r.url + " --key @" + r.file + "\n"; code != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("import to a server: got %d, %q, %q; want the end %q", code, out, errs, want)
	}
	code, out, errs = run(t, "", "sessions", "list", "--url", r.url, "--key", "env:SOME_KEY")
	compare.True(t, !strings.Contains(out+errs, "bob_secret") && code == 1, "another key: got %d, %q, %q; want a refusal without the key", code, out, errs)
}

// A pipe is one message, and what is no answer does not come to the standard output.
func TestPipeIsOneMessage(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	code, out, errs := run(t, "my name is\nAda\n", append([]string{"chat"}, flags...)...)
	must.True(t, code == 0 && strings.Contains(out, "in our conversation now"), "chat: %d, %q, %q", code, out, errs)
	code, out, errs = run(t, "", append([]string{"sessions", "list", "--json"}, flags...)...)
	compare.True(t, code == 0 && strings.Count(out, `"message_count": 2,`) == 1, "sessions: %d, %s, %q, want one with two messages", code, out, errs)
	code, out, errs = run(t, "of the report", append([]string{"ask", "--last", "--json", "What is my name?"}, flags...)...)
	compare.True(t, code == 0 && strings.Contains(out, "What is my name?\\n\\nof the report") && fields(t, out)["run"] != nil, "ask --json: %d, %s, %q", code, out, errs)
	_, before, _ := run(t, "", append([]string{"sessions", "list"}, flags...)...)
	for _, args := range [][]string{{"ask", "hello"}, {"ask", "--keep", "--model", "nosuch", "hello"}} { // neither leaves a session
		_, _, _ = run(t, "", append(args, flags...)...)
		if _, out, _ := run(t, "", append([]string{"sessions", "list"}, flags...)...); out != before {
			t.Errorf("%q: got the sessions %s, want %s", args, out, before)
		}
	}
	_, _, _ = run(t, "", append([]string{"ask", "--keep", "--json", "is", "sk-proj-Zx81kQ0vN4mT7bLr2WcYpE9d a key?"}, flags...)...)
	if _, out, _ := run(t, "", append([]string{"sessions", "list", "--json"}, flags...)...); strings.Contains(out, "Zx81") || !regexp.MustCompile(`"title": "is .* a key\?"`).MatchString(out) {
		t.Errorf("got the sessions %s, want one whose title is the question without the key", out)
	}
	if code, _, errs := run(t, " \n", append([]string{"ask"}, flags...)...); code != 1 || !strings.Contains(errs, "the question is empty") {
		t.Errorf("ask nothing: %d, %q", code, errs)
	}
}

// The settings of a server that runs are those that doctor, config and backup look at.
func TestSettingsOfTheRunningServer(t *testing.T) {
	t.Parallel()
	flags := folder(t)
	defer serve(t, append(flags, "--context-usage-threshold", "0.7"))()
	for args, says := range map[string]string{
		"config show": "--context-usage-threshold", "doctor": "is the running server's", "agents show assistant": "0.7",
	} {
		code, out, errs := run(t, "", append(strings.Fields(args), flags...)...)
		if code != 0 || !strings.Contains(out, says) || !strings.HasPrefix(errs, "using the settings of the server at http://127.0.0.1:") {
			t.Errorf("%s: got %d, %q, %q; want %q and whose settings they are", args, code, out, errs, says)
		}
	}
	file := filepath.Join(t.TempDir(), "bobbin.yaml")
	must.Do(t, os.WriteFile(file, []byte("data_dir: "+flags[slices.Index(flags, "--data-dir")+1]+"\n"), 0o600))
	if _, out, errs := run(t, "", "config", "show", "--config", file); !regexp.MustCompile(`(?m)^data_dir .*bobbin\.yaml:1$`).MatchString(out) {
		t.Errorf("got %q, %q, want where the folder is set", out, errs)
	}
}
