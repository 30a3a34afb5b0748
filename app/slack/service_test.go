package slack

import (
	"log/slog"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// A bot token that does not work is an error in the log from the start.
func TestCheckToken(t *testing.T) {
	t.Parallel()
	fake := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = fake.Close() })
	for token, want := range map[string]string{fake.AddWorkspace("acme").Install(): "", "xoxb-wrong": "level=ERROR"} {
		var logged strings.Builder
		log := slog.New(slog.NewTextHandler(&logged, nil))
		settings := config.Slack{BotToken: config.NewSecret(token), APIURL: fake.APIURL()}
		clients := must.Get(NewClients(settings, nil, log))(t)
		New(Options{Settings: settings, Clients: clients, Logger: log}).checkToken(t.Context())
		if got := logged.String(); !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("%s: got %q, want %q", token, got, want)
		}
	}
}
