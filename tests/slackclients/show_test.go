package slackclients_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"

	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// The clients, at the versions of the lock file.
const (
	webAPI     = "@slack/web-api 8.2"
	bolt       = "@slack/bolt 5.1"
	socketMode = "@slack/socket-mode 3.1"
	slackGo    = "slack-go 0.35"
)

// way is how Slack and Bobbin reach each other, and where Bobbin stores what it has.
type way struct {
	name   string
	socket bool
	url    func(t *testing.T) string
}

// ways returns two ways that have everything once, in the long form all.
func ways() []way {
	sqlite := func(t *testing.T) string { t.Helper(); return dbtest.MigratedSQLiteURL(t) }
	postgres := func(t *testing.T) string { t.Helper(); return dbtest.MigratedPostgresURL(t) }
	all := []way{{"HTTP, SQLite", false, sqlite}, {"Socket Mode, PostgreSQL", true, postgres}, {"HTTP, PostgreSQL", false, postgres}, {"Socket Mode, SQLite", true, sqlite}}
	if os.Getenv("BOBBIN_TEST_LONG") == "" {
		return all[:2]
	}
	return all
}

// People who use Slack's own client talk to a Bobbin in a process. Each event comes twice. The
// table has the scenarios and the ways.
func TestShowSlackClients(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	var mu sync.Mutex
	passed := map[string]bool{} // scenario and way; guarded by mu
	t.Run("ways", func(t *testing.T) {
		for _, w := range ways() {
			t.Run(w.name, func(t *testing.T) {
				t.Parallel()
				b := newBobbin(t, w.url(t), w.socket)
				b.DisturbEvents(fakeslack.EventFaults{Duplicate: true})
				note := func(s scenario, ok bool) {
					mu.Lock()
					defer mu.Unlock()
					passed[s.name+"/"+w.name] = ok
				}
				t.Run("together", func(t *testing.T) {
					for i, s := range scenarios() {
						if !s.alone {
							t.Run(s.name, func(t *testing.T) {
								t.Parallel()
								s.run(t, b.converse(i))
								note(s, !t.Failed())
							})
						}
					}
				})
				for i, s := range scenarios() {
					if s.alone {
						t.Run(s.name, func(t *testing.T) {
							s.run(t, b.converse(i))
							note(s, !t.Failed())
						})
					}
				}
			})
		}
	})
	rows := [][]string{{"scenario, " + webAPI + " as the people"}}
	for _, w := range ways() {
		rows[0] = append(rows[0], w.name)
	}
	for _, s := range scenarios() {
		row := []string{s.name}
		for _, w := range ways() {
			row = append(row, map[bool]string{true: "ok", false: "FAILED"}[passed[s.name+"/"+w.name]])
		}
		rows = append(rows, row)
	}
	logTable(t, rows)
}

// converse returns a conversation in a channel of its own.
func (b *bobbin) converse(i int) *conversation {
	c := &conversation{bobbin: b, mark: fmt.Sprintf("[mark %d]", i)}
	c.channel = b.ws.AddChannel(fmt.Sprintf("C9%02d", i), fmt.Sprintf("scenario-%d", i)).ID
	return c
}

// logTable prints the rows as a table.
func logTable(t *testing.T, rows [][]string) {
	t.Helper()
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	t.Logf("\n%s", b.String())
}

// trap is something that is known to break apps of Slack, or that the clients must agree with.
type trap struct {
	name   string
	tests  string // names of scenarios, and of tests as folder:Test, by semicolons
	client string
}

// traps returns what breaks, and then the scenarios with the clients.
func traps() []trap {
	return []trap{
		{"breaks: duplicate replies from retries", "the same message twice; tests/slackfake/fakeslack:TestRetries; tests/slack:TestSlackThread", webAPI + ", " + bolt},
		{"breaks: mention and message are one", "the same message twice; app/slack:TestIntake", webAPI},
		{"breaks: loops", "echo of own messages and changes; tests/slack:TestSlackBots; app/slack:TestIntake", webAPI},
		{"breaks: missing thread, root, own replies", "history with root and own replies; tests/slack:TestSlackThread", webAPI},
		{"breaks: long replies cut or silent", "long answer with code and a table; tests/slack:TestShowSlackLong; app/slack:TestSplitTextProperties", webAPI},
		{"breaks: stream expiry", "stream longer than its time; app/slack:TestStreamRotation; app/slack:TestStreamedAnswer", webAPI + ", " + slackGo},
		{"breaks: tables as raw pipes", "long answer with code and a table; tests/slack:TestShowSlackLong", webAPI},
		{"breaks: edits as legacy mrkdwn", "edits and deletions both ways; tests/slack:TestSlackEditOnTheWeb", webAPI},
		{"breaks: approval buttons stay clickable", "web and Slack decide at the same time; app/slack:TestApproval; tests/slack:TestSlackApproval", slackGo},
		{"breaks: race of token refreshes", "app/slack:TestRotation; app/slack:TestRotationFails; tests/slackfake/fakeslack:TestOAuth; TestWebAPI", webAPI + ", " + slackGo},
		{"breaks: socket ghosts", "TestSocketGhost; TestSocketMode; tests/slack:TestSlackSocketMode", slackGo + ", " + socketMode},
		{"breaks: double post after a lost answer", "lost answers of Slack; app/slack:TestLostAnswers; app/slack:TestUnknownPost", webAPI + ", " + slackGo},
		{"bolt: signed events, retries, commands, clicks, shortcuts", "TestBolt", bolt},
		{"bolt: verifySlackRequest on shared vectors", "TestBolt; app/slack:TestSlackTestVector", bolt},
		{"bolt: both accept and refuse the same requests", "TestSameAnswersAsBolt", bolt},
		{"web-api: another app and user, uploads, chatStream, forms, 429", "TestWebAPI; file with the official upload", webAPI},
		{"socket-mode: hello, envelope, ack, disconnect", "TestSocketMode", socketMode},
		{"oauth: install URL, state, callback", "app/slack:TestInstall; app/slack:TestInstallRefused; tests/slackfake/fakeslack:TestOAuth; TestWebAPI", webAPI},
		{"blocks of outgoing messages, by the limits of the fake alone", "tests/slackfake/fakeslack:TestRefusals; tests/slack:TestShowSlackLong", "none"},
		{"emulate: the same fields and errors of the Web API", "TestSameShapesAsEmulate; TestBobbinOnEmulate", "emulate 0.12.2"},
		{"slack-go: streams, metadata, Socket Mode, agent_session_stopped", "tests/slackfake/fakeslack:TestStreams; tests/slackfake/fakeslack:TestSocketMode; tests/slack:TestSlackStops", slackGo},
		{"scenario: same message twice", "the same message twice; app/slack:TestIntake", webAPI},
		{"scenario: ack in time with a long run", "acknowledged while a run takes long", webAPI},
		{"scenario: 429 storm keeps the order", "429 storm; app/slack:TestRateLimitStorm; app/slack:TestSlowChannel", webAPI + ", " + slackGo},
		{"scenario: lost response, one post", "lost answers of Slack; app/slack:TestLostAnswers", webAPI + ", " + slackGo},
		{"scenario: stream over its time, full text", "stream longer than its time; app/slack:TestStreamRotation", webAPI + ", " + slackGo},
		{"scenario: 60 kB with fences and tables", "tests/slack:TestShowSlackLong; long answer with code and a table", webAPI},
		{"scenario: edit and delete both ways", "edits and deletions both ways; tests/slack:TestShowSlackEdits", webAPI},
		{"scenario: approval on the web while Slack clicks", "web and Slack decide at the same time", slackGo},
		{"scenario: echo with nested message_changed", "echo of own messages and changes; app/slack:TestIntake", webAPI},
		{"scenario: Slack down", "Slack is away", webAPI},
		{"scenario: uninstall stops the outbox", "the app is removed; tests/slack:TestSlackUninstalled; tests/slack:TestSlackManyWorkspaces", webAPI},
		{"scenario: two workspaces, same channel id", "two workspaces, one channel id; tests/slack:TestSlackManyWorkspaces; tests/slackfake/fakeslack:TestWorkspaces", webAPI},
		{"scenario: kill -9 between insert and ack", "kill -9 before an event is acknowledged; app/slack:TestDatabaseAway", webAPI},
		{"scenario: kill -9 between post and ts", "kill -9 between a post and its ts; app/slack:TestDeathBetweenPostAndTimestamp", webAPI + ", " + slackGo},
	}
}

// Each known trap has a scenario or a test, which is there.
func TestShowSlackTraps(t *testing.T) {
	t.Parallel()
	rows := [][]string{{"trap", "held by", "client"}}
	for _, tr := range traps() {
		for name := range strings.SplitSeq(tr.tests, "; ") {
			if !slices.ContainsFunc(scenarios(), func(s scenario) bool { return s.name == name }) && !hasTest(t, name) {
				t.Errorf("%s: there is no scenario or test %q", tr.name, name)
			}
		}
		rows = append(rows, []string{tr.name, tr.tests, tr.client})
	}
	logTable(t, rows)
}

// hasTest reports whether there is a test: of this folder, or of another one as folder:Test.
func hasTest(t *testing.T, name string) bool {
	t.Helper()
	folder, test, ok := strings.Cut(name, ":")
	if !ok {
		folder, test = "tests/slackclients", name
	}
	files, err := filepath.Glob(filepath.Join("../..", folder, "*_test.go"))
	must(t, err)
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(t \*testing\.T\)`)
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		must(t, err)
		return declared.Match(text)
	})
}
