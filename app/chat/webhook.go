package chat

import (
	"net/netip"
	"net/url"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// maxWebhook bounds the address of a webhook, in bytes.
const maxWebhook = 2048

// webhook complains about a webhook that could never be told anything; nil is none,
// and with private its address need not be of the public internet. Where a name
// leads to is looked at when it is connected to.
func (f *faults) webhook(w *core.Webhook, private bool) {
	if w == nil {
		return
	}
	u, err := url.Parse(string(w.URL))
	switch {
	case err != nil || len(w.URL) > maxWebhook || core.CleanText(string(w.URL)) != string(w.URL) || u.Hostname() == "":
		f.Add("webhook", "url is not an address of at most %d bytes; write for example https://example.com/hook", maxWebhook)
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		f.Add("webhook", "url must begin with https://")
	case u.User != nil || u.Fragment != "":
		f.Add("webhook", "url must not have a user, a password or a fragment")
	case !private && !public(u.Hostname()):
		f.Add("webhook", "url is not of the public internet")
	}
	if _, err := core.WebhookKey(w.Secret); err != nil {
		f.Add("webhook", "secret %s", err)
	}
}

// public reports whether the host is a name, or an address of the public internet.
func public(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err != nil || netguard.Public(addr) == nil
}
