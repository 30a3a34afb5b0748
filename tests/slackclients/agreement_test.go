package slackclients_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"bobbin/tests/dbtest"
	"bobbin/tests/process"
	"bobbin/tests/slackfake/fakeslack"
)

// signed returns a request that is signed at a distance from now.
func signed(path, kind, body, secret string, ahead time.Duration) rawRequest {
	timestamp := strconv.FormatInt(time.Now().Add(ahead).Unix(), 10)
	return rawRequest{path, body, map[string]string{
		"Content-Type": kind, "X-Slack-Request-Timestamp": timestamp, "X-Slack-Signature": fakeslack.Sign(secret, timestamp, []byte(body)),
	}}
}

// Bobbin and an app of Bolt accept and refuse the same requests. Bolt lets those pass that are
// signed in the future.
func TestSameAnswersAsBolt(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	const events, commands, form, secret = "/slack/events", "/slack/commands", "application/x-www-form-urlencoded", "signing-secret"
	const jsonType, event, challenge = "application/json", `{"type":"event_callback","event_id":"Ev1","team_id":"T1","event":{"type":"star_added"}}`, `{"type":"url_verification","challenge":"c"}`
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t), false)
	s := b.world.start(t, "bolt.mjs", "SLACK_SIGNING_SECRET="+secret, `SLACK_VECTOR=["","0","",""]`)
	port, _ := s.read()["port"].(float64)
	app := "http://127.0.0.1:" + strconv.Itoa(int(port))
	for _, c := range []struct {
		name         string
		request      rawRequest
		bobbin, bolt int
	}{
		{"an event", signed(events, jsonType, event, secret, 0), 200, 200},
		{"a challenge", signed(events, jsonType, challenge, secret, 0), 200, 200},
		{"a wrong secret", signed(events, jsonType, event, "other-secret", 0), 401, 401},
		{"ten minutes old", signed(events, jsonType, event, secret, -10*time.Minute), 401, 401},
		{"in an hour", signed(events, jsonType, event, secret, time.Hour), 401, 200},
		{"no signature", rawRequest{events, event, map[string]string{"Content-Type": jsonType}}, 401, 401},
		{"ssl_check, unsigned", rawRequest{commands, "ssl_check=1&token=x", map[string]string{"Content-Type": form}}, 200, 200},
		{"more than 4 MiB", signed(events, jsonType, `{"x":"`+strings.Repeat("x", 4<<20)+`"}`, secret, 0), 413, 413},
		{"not JSON", signed(events, jsonType, "text", secret, 0), 400, 400},
	} {
		got, gotBolt := c.request.status(t, "http://"+b.addr), c.request.status(t, app)
		if got != c.bobbin || gotBolt != c.bolt {
			t.Errorf("%s: got %d of Bobbin and %d of Bolt, want %d and %d", c.name, got, gotBolt, c.bobbin, c.bolt)
		}
	}
}

// A socket that is open and silent is noticed: Bobbin opens another one, and what was sent to
// the silent one comes again.
func TestSocketGhost(t *testing.T) {
	t.Parallel()
	process.FindNodeClients(t)
	b := newBobbin(t, dbtest.MigratedSQLiteURL(t), true)
	ask := func(text string) string {
		t.Helper()
		ts, err := b.alice.Post("C1", b.ws.Bot().Mention()+" "+text)
		must(t, err)
		return ts
	}
	answered := func(root string) func() bool { return func() bool { return len(b.ws.Thread("C1", root)) == 2 } }
	b.await(t, "an answer", answered(ask("hello")))
	b.SilenceSockets()
	silent := ask("are you there?")
	b.await(t, "another socket", func() bool { return b.Sockets() == 1 })
	b.await(t, "an answer over another socket", answered(silent))
}
