package config_test

import (
	"strings"
	"testing"

	"bobbin/app/core/config"
)

// A key may be told by its hash, so that the file need not hold the secret.
func TestKeysByHash(t *testing.T) {
	t.Parallel()
	key, secret := config.NewAPIKey("web")
	other, otherSecret := config.NewAPIKey("web")
	if secret == otherSecret || key.Secret.Equal(other.Secret) || len(secret) < 40 {
		t.Errorf("two keys: %q, %q", secret, otherSecret)
	}
	plain := config.APIKey{Name: "web", Secret: config.NewSecret(secret)}
	want, _ := plain.Sum()
	if got, ok := key.Sum(); !ok || got != want || !key.Hashed() || plain.Hashed() {
		t.Errorf("sum of the hashed key: %x %v, want %x", got, ok, want)
	}
	load := func(keys string) error {
		_, _, err := config.Load(config.Options{Dir: t.TempDir(), UserDir: t.TempDir(), Env: func(name string) string {
			return map[string]string{"BOBBIN_AUTH_KEYS": keys}[name]
		}})
		return err
	}
	hash := key.Secret.Reveal()
	if err := load("web:" + hash + ",mail:" + other.Secret.Reveal()); err != nil {
		t.Errorf("load: %v", err)
	}
	for keys, says := range map[string]string{
		"web:" + hash + ",mail:" + secret: "same secret",
		"web:sha256:12":                   "is not one",
		"web:" + hash + "00":              "is not one",
		"web:sha256:":                     "is not one",
		"web:" + hash[:len(hash)-1] + "g": "is not one",
	} {
		err := load(keys)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v, want %q", keys, err, says)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("the error holds the secret: %v", err)
		}
	}
}
