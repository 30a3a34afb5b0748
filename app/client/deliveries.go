package client

import "bobbin/app/core"

// webhook is a webhook in a request, with its secret.
type webhook struct {
	URL    string `json:"url"`
	Secret string `json:"secret,omitempty"`
}

// webhookOf converts a webhook for a request; nil stays nil.
func webhookOf(w *core.Webhook) *webhook {
	if w == nil {
		return nil
	}
	return &webhook{URL: string(w.URL), Secret: w.Secret}
}
