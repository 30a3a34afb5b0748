package chat_test

import (
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
)

// A webhook that could never be told anything is refused when it is named; what is
// said of it does not show its secret.
func TestWebhooksAreChecked(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		for url, want := range map[string]string{
			"https://example.com/hook?a=b": "", "https://[2606:4700:4700::1111]:8443/": "",
			"http://example.com": "https://", "ftp://example.com": "https://", "example.com": "not an address", "": "not an address", "https://": "not an address",
			"https://u:p@example.com": "a user", "https://example.com/#x": "fragment", "https://127.0.0.1/": "public", "https://[::1]/": "public",
			"https://169.254.169.254/": "public", "https://example.com/" + strings.Repeat("x", 2048): "2048", "https://a.example/\x00": "not an address",
		} {
			_, err := h.CreateSession(t.Context(), ann, core.Session{Webhook: &core.Webhook{URL: core.Target(url)}})
			if want == "" && err != nil || want != "" && (!errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want %q", url, err, want)
			}
		}
		const good = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		for secret, fine := range map[string]bool{good: true, "hush": false, "whsec_hush": false, "whsec_" + strings.Repeat("QUJD", 22): false} {
			_, err := h.CreateSession(t.Context(), ann, core.Session{Webhook: &core.Webhook{URL: "https://example.com", Secret: secret}})
			if (err == nil) != fine || err != nil && strings.Contains(err.Error(), "hush") {
				t.Errorf("secret %q: got %v, want fine: %t", secret, err, fine)
			}
		}
	})
}
