package commandline_test

import (
	"net"
	"strings"
	"testing"
)

// What the command line says to the server of this machine goes to no proxy, whatever
// address the server listens on, and the server announces an address of this machine.
func TestCommandLineUsesNoProxy(t *testing.T) {
	t.Parallel()
	hosts := map[string]string{"0.0.0.0:0": "http://127.0.0.1:", ":0": "http://127.0.0.1:", "127.0.0.1:0": "http://127.0.0.1:"}
	if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "[::1]:0"); err == nil { // not every machine has IPv6
		_ = l.Close()
		hosts["[::]:0"] = "http://[::1]:"
	}
	for addr, host := range hosts {
		t.Run(addr, func(t *testing.T) {
			t.Parallel()
			proxy := newStranger(t)
			s := newShell(t, "BOBBIN_DEFAULT_LLM=demo", "BOBBIN_AUTH_KEYS=web:sha256:"+strings.Repeat("0a", 32),
				"http_proxy="+proxy.URL, "HTTP_PROXY="+proxy.URL, "https_proxy="+proxy.URL, "NO_PROXY=")
			if said := s.serve(t, "--addr", addr); !strings.HasPrefix(said.URL, host) {
				t.Errorf("the server announces %s, want %s", said.URL, host)
			}
			if got := s.run(t, "", "sessions", "list"); got.code != 0 {
				t.Errorf("got %d: %s%s", got.code, got.out, got.errs)
			}
			if log := s.read(t, "serve.log"); !strings.Contains(log, "api       "+host) {
				t.Errorf("the start does not say %s:\n%s", host, log)
			}
			if n := proxy.requests.Load(); n != 0 {
				t.Errorf("%d connections to the proxy, want none", n)
			}
		})
	}
}
