package slack_test

import (
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core/config"
	"bobbin/app/slack"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// Each thing that can be wrong with the settings is named, with what to do.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := must.Get(fakeslack.New(fakeslack.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	bobbin := httptest.NewServer(newHandler(dbtest.SQLite(t), &counted{}))
	t.Cleanup(bobbin.Close)
	good := config.Slack{BotToken: config.NewSecret(s.AddWorkspace("acme").Install()), SigningSecret: config.NewSecret(signingSecret), AppToken: config.NewSecret("xapp-1-A0001-1"), APIURL: s.APIURL()}
	wrong := func(change func(*config.Slack)) config.Slack {
		c := good
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		cfg     config.Slack
		address string
		broken  []string
	}{
		"a wrong token":     {wrong(func(c *config.Slack) { c.BotToken = config.NewSecret("xoxb-wrong") }), "", []string{"bot token"}},
		"a wrong app token": {wrong(func(c *config.Slack) { c.AppToken = config.NewSecret("xapp-wrong") }), bobbin.URL, []string{"socket mode"}},
		"a wrong secret":    {wrong(func(c *config.Slack) { c.SigningSecret = config.NewSecret("wrong") }), bobbin.URL, []string{"reach"}},
		"not there":         {good, s.URL, []string{"reach"}},
		"not an address":    {good, "::", []string{"reach"}},
		"fine":              {good, bobbin.URL + "/", nil},
	} {
		var broken []string
		for _, f := range slack.Check(t.Context(), c.cfg, nil, c.address) {
			if f.Do != "" {
				broken = append(broken, f.Check)
			}
			if strings.Contains(f.Detail+f.Do, signingSecret) || strings.Contains(f.Detail, "xoxb-") {
				t.Errorf("%s: %s shows a secret", name, f.Detail)
			}
		}
		if !slices.Equal(broken, c.broken) {
			t.Errorf("%s: got %q broken, want %q", name, broken, c.broken)
		}
	}
}

// With an address the manifest has request URLs, without one it has Socket Mode.
func TestManifest(t *testing.T) {
	t.Parallel()
	for address, urls := range map[string]int{"": 0, "https://bobbin.example.org/": 4} {
		data := must.Get(slack.Manifest(slack.ManifestOptions{Address: address, Email: true}))(t)
		var read struct {
			Settings struct {
				SocketMode bool `json:"socket_mode_enabled"`
			} `json:"settings"`
		}
		must.Do(t, json.Unmarshal(data, &read))
		if got := strings.Count(string(data), `"https://bobbin.example.org/slack/`); got != urls || read.Settings.SocketMode != (urls == 0) || !strings.Contains(string(data), "users:read.email") {
			t.Errorf("%q: got %d request URLs, want %d:\n%s", address, got, urls, data)
		}
	}
}
