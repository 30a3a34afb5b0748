package slack

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	slackapi "github.com/slack-go/slack"

	"bobbin/app/core"
)

// errSealed says that stored tokens cannot be opened.
var errSealed = errors.New("the stored tokens were sealed with another slack.token_key, or changed; restore that key, or install the app again")

// vault seals texts with AES-256-GCM. What is sealed for one name cannot be opened for another.
type vault struct{ aead cipher.AEAD }

// newVault returns a vault with a key of 32 bytes.
func newVault(key []byte) (vault, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return vault{}, fmt.Errorf("slack.token_key: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return vault{aead}, err
}

func (v vault) seal(name string, plain []byte) []byte {
	return v.aead.Seal(nil, nil, plain, []byte(name))
}

func (v vault) open(name string, sealed []byte) ([]byte, error) {
	return v.aead.Open(nil, nil, sealed, []byte(name))
}

// tokens are the secrets of an installation.
type tokens struct {
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"` // works once; empty = the access token does not expire
}

// tokensName is the name for which the tokens of an installation are sealed.
func tokensName(team string) string { return "slack_installations/" + team }

// sealTokens puts the tokens of Slack's answer into the installation.
func (v vault) sealTokens(i *core.SlackInstallation, answer *slackapi.OAuthV2Response) error {
	if answer.AccessToken == "" || answer.ExpiresIn > 0 && answer.RefreshToken == "" {
		return errors.New("oauth.v2.access: Slack gave no bot token")
	}
	plain, err := json.Marshal(tokens{answer.AccessToken, answer.RefreshToken})
	if err != nil {
		return err
	}
	i.Tokens, i.Scopes, i.ExpiresAt = v.seal(tokensName(i.Team), plain), answer.Scope, nil
	if answer.ExpiresIn > 0 {
		at := core.Now().Add(time.Duration(answer.ExpiresIn) * time.Second)
		i.ExpiresAt = &at
	}
	return nil
}

// openTokens returns the tokens of an installation.
func (v vault) openTokens(i core.SlackInstallation) (tokens, error) {
	plain, err := v.open(tokensName(i.Team), i.Tokens)
	if err != nil {
		return tokens{}, fmt.Errorf("workspace %s: %w", i.Team, errSealed)
	}
	var t tokens
	return t, json.Unmarshal(plain, &t)
}
