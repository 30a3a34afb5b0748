package slack

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/config"
)

// withAPI returns a workspace whose Web API is at the address.
func withAPI(address string) *workspace {
	settings := config.Slack{APIURL: address}
	return &workspace{New(Options{Settings: settings, Logger: slog.New(slog.DiscardHandler)}), newClient(settings, "xoxb-hush"), "T1"}
}

// The token goes to Slack alone: not to other hosts, named by the file or by a redirect.
func TestDownload(t *testing.T) {
	t.Parallel()
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("another host was asked for %s", r.URL) }))
	t.Cleanup(elsewhere.Close)
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/unsigned", http.StatusFound)
		case "/unsigned":
			fmt.Fprintf(w, "token %q", r.Header.Get("Authorization"))
		case "/away":
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
		case "/login":
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
		case "/busy":
			w.WriteHeader(http.StatusTooManyRequests)
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		default:
			fmt.Fprint(w, r.Header.Get("Authorization"))
		}
	}))
	t.Cleanup(files.Close)
	s := withAPI(files.URL + "/api/")
	for name, c := range map[string]struct {
		file file
		want string
		err  error // nil with a want; else its kind
	}{
		"a file":              {file{Download: files.URL + "/a"}, "Bearer xoxb-hush", nil},
		"its other address":   {file{Private: files.URL + "/a"}, "Bearer xoxb-hush", nil},
		"moved":               {file{Download: files.URL + "/moved"}, `token ""`, nil},
		"moved elsewhere":     {file{Download: files.URL + "/away"}, "", core.ErrUnprocessable},
		"elsewhere":           {file{Download: elsewhere.URL + "/a"}, "", core.ErrUnprocessable},
		"with a password":     {file{Download: strings.Replace(files.URL, "//", "//me:pass@", 1)}, "", core.ErrUnprocessable},
		"a login page":        {file{Download: files.URL + "/login", Mimetype: "image/png"}, "", core.ErrUnprocessable},
		"gone":                {file{Download: files.URL + "/gone"}, "", core.ErrUnprocessable},
		"busy":                {file{Download: files.URL + "/busy"}, "", errors.ErrUnsupported},
		"too large, as told":  {file{Download: files.URL + "/a", Size: 101}, "", core.ErrTooLarge},
		"without any address": {file{}, "", core.ErrUnprocessable},
	} {
		data, err := s.download(t.Context(), c.file, 100)
		switch {
		case c.want != "" && (err != nil || string(data) != c.want):
			t.Errorf("%s: got %q, %v, want %q", name, data, err, c.want)
		case errors.Is(c.err, errors.ErrUnsupported) && (err == nil || isFinal(err)):
			t.Errorf("%s: got %v, want an error after which it is tried again", name, err)
		case c.want == "" && !errors.Is(c.err, errors.ErrUnsupported) && !errors.Is(err, c.err):
			t.Errorf("%s: got %v, want %v", name, err, c.err)
		}
	}
	if _, err := s.download(t.Context(), file{Download: files.URL + "/a"}, 3); !errors.Is(err, core.ErrTooLarge) {
		t.Errorf("larger than it was said to be: got %v", err)
	}
	slack := withAPI("https://slack.com/api/")
	for _, address := range []string{"http://files.slack.com/a", "https://files.slack.com:8443/a", "https://slack.com.evil.example/a", files.URL + "/a", "file:///etc/passwd"} {
		if _, err := slack.download(t.Context(), file{Download: address}, 100); !errors.Is(err, core.ErrUnprocessable) {
			t.Errorf("%s: got %v, want it refused", address, err)
		}
	}
}
