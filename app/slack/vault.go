package slack

import (
	"crypto/aes"
	"crypto/cipher"
	"errors"
	"fmt"

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

// tokensName is the name for which the tokens of an installation are sealed.
func tokensName(team string) string { return "slack_installations/" + team }

// openToken returns the bot token of an installation.
func (v vault) openToken(i core.SlackInstallation) (string, error) {
	plain, err := v.open(tokensName(i.Team), i.Tokens)
	if err != nil {
		return "", fmt.Errorf("workspace %s: %w", i.Team, errSealed)
	}
	return string(plain), nil
}
