package chat

import (
	"context"
	"net/netip"
	"net/url"

	"bobbin/app/core"
	"bobbin/app/core/netguard"
)

// maxWebhook bounds the address of a webhook, in bytes.
const maxWebhook = 2048

// checkWebhook complains about a webhook that could never be told anything; nil is none,
// and with private its address need not be of the public internet. Where a name
// leads to is looked at when it is connected to.
func (f *faults) checkWebhook(w *core.Webhook, private bool) {
	if w == nil {
		return
	}
	u, err := url.Parse(string(w.URL))
	isPublic := func(host string) bool { // a name, or an address of the public internet
		addr, err := netip.ParseAddr(host)
		return err != nil || netguard.Public(addr) == nil
	}
	switch {
	case err != nil || len(w.URL) > maxWebhook || core.CleanText(string(w.URL)) != string(w.URL) || u.Hostname() == "":
		f.Add("webhook", "url is not an address of at most %d bytes; write for example https://example.com/hook", maxWebhook)
	case u.Scheme != "https" && (u.Scheme != "http" || !private):
		f.Add("webhook", "url must begin with https:// (the operator can allow http:// by webhooks.allow_private)")
	case u.User != nil || u.Fragment != "":
		f.Add("webhook", "url must not have a user, a password or a fragment")
	case !private && !isPublic(u.Hostname()):
		f.Add("webhook", "url is not of the public internet (the operator can allow others by webhooks.allow_private)")
	}
	if _, err := core.WebhookKey(w.Secret); err != nil {
		f.Add("webhook", "secret %s", err)
	}
}

// SetDefaultWebhook replaces the webhook of the owner's runs whose message and session have
// none. Runs that end from now on are reported to it.
func (s *Service) SetDefaultWebhook(ctx context.Context, tenant core.Tenant, hook core.Webhook) (core.Webhook, error) {
	var f faults
	f.checkWebhook(&hook, s.PrivateWebhooks)
	if err := f.Err(); err != nil {
		return core.Webhook{}, err
	}
	return hook, s.Webhooks.Set(ctx, tenant.Owner, hook)
}
