package slack

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core/config"
	"bobbin/tests/must"
	"bobbin/tests/slackfake/fakeslack"
)

// Of a long thread the first message and the newest ones are read, of one that Slack does not give
// whole what it gave. A message of nobody is where others are missing.
func TestReadThread(t *testing.T) {
	t.Parallel()
	const gap = "[Messages of this thread are missing here"
	for name, c := range map[string]struct {
		replies, page int
		fault         []fakeslack.Fault
		attempt       int
		want          string // texts of the first three and the last one, and their number; empty = an error
	}{
		"short":              {2, 2, nil, 1, "root, reply 1, reply 2 … reply 2: 3"},
		"long":               {1200, 999, nil, 1, "root, " + gap + ", reply 1002 … reply 1200: 201"},
		"too long":           {60, 2, nil, 1, "root, reply 1, reply 2 … " + gap + ": 41"},
		"one page":           {40, 15, []fakeslack.Fault{{Times: 1}, {RetryAfter: time.Minute}}, 1, "root, reply 1, reply 2 … " + gap + ": 16"},
		"no page":            {2, 15, []fakeslack.Fault{{RetryAfter: time.Minute}}, 1, ""},
		"no page even later": {2, 15, []fakeslack.Fault{{RetryAfter: time.Minute}}, 3, gap + " … " + gap + ": 1"},
		"no scope":           {2, 15, []fakeslack.Fault{{Error: "missing_scope"}}, 1, " … : 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fake := must.Get(fakeslack.New(fakeslack.Options{PageLimit: c.page}))(t)
			t.Cleanup(func() { _ = fake.Close() })
			team := fake.AddWorkspace("acme")
			channel, alice := team.AddChannel("C1", "pumps").ID, team.AddUser("Alice", "")
			root, err := alice.Post(channel, "root")
			for i := 1; i <= c.replies && err == nil; i++ {
				_, err = alice.Reply(channel, root, fmt.Sprintf("reply %d", i))
			}
			if err != nil {
				t.Fatal(err)
			}
			token := team.Install()
			for _, f := range c.fault {
				fake.Inject(f)
			}
			s := &workspace{Service: &Service{Options: Options{Logger: slog.New(slog.DiscardHandler)}}, api: newClient(config.Slack{APIURL: fake.APIURL()}, token)}
			got, err := s.readThread(t.Context(), incoming{event: event{Channel: channel, Thread: root}, attempt: c.attempt}, slackapi.GetConversationRepliesParameters{})
			if (err != nil) != (c.want == "") {
				t.Fatalf("got %d messages and the error %v, want %q", len(got), err, c.want)
			}
			if err != nil {
				return
			}
			var texts []string
			for _, ev := range got {
				text, _, _ := strings.Cut(ev.Text, ":")
				texts = append(texts, text)
			}
			last := ""
			if len(texts) > 0 {
				last = texts[len(texts)-1]
			}
			if shown := fmt.Sprintf("%s … %s: %d", strings.Join(texts[:min(3, len(texts))], ", "), last, len(texts)); shown != c.want {
				t.Errorf("got %q, want %q", shown, c.want)
			}
		})
	}
}
