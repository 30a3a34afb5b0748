package slack

import (
	"net/http"

	slackapi "github.com/slack-go/slack"
)

// verifier checks that a request is from Slack and at most five minutes off this machine's
// clock, in either direction.
type verifier struct {
	secret string // the signing secret of the app
}

// checkBody returns an error unless the signature is that of the body.
func (v verifier) checkBody(h http.Header, body []byte) error {
	sv, err := slackapi.NewSecretsVerifier(h, v.secret)
	if err != nil {
		return err
	}
	if _, err := sv.Write(body); err != nil {
		return err
	}
	return sv.Ensure()
}
