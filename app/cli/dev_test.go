package cli_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"bobbin/app/cli"
)

// The fake Slack says how Bobbin talks to it, and its page is there until it is stopped.
func TestDevSlack(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	reader, writer := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Main(ctx, []string{"dev", "slack", "--listen", "127.0.0.1:0"}, cli.Streams{Out: writer, Err: t.Output()})
		_ = writer.Close()
	}()
	lines, variables := bufio.NewScanner(reader), map[string]string{}
	for lines.Scan() {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "), "=")
		if ok {
			variables[name] = value
		}
		if strings.HasPrefix(lines.Text(), "Ctrl-C") {
			break
		}
	}
	base := strings.TrimSuffix(variables["BOBBIN_SLACK_API_URL"], "api/")
	for _, name := range []string{"BOBBIN_SLACK_BOT_TOKEN", "BOBBIN_SLACK_SIGNING_SECRET", "BOBBIN_SLACK_APP_TOKEN"} {
		if variables[name] == "" {
			t.Errorf("got %v, want %s, too", variables, name)
		}
	}
	for path, want := range map[string]string{"": "<title>Fake Slack</title>", "page/state": `"name":"general"`} {
		response, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: got %.200s and %v, want %s", path, body, err, want)
		}
	}
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("got the exit code %d, want 0", code)
	}
}
