package config

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// hidden is what a secret prints.
const hidden = "***"

// Secret is a text that must not be seen: it prints as "***", or with that in the
// place of its password, through fmt with every verb, encoding/json, YAML, and
// slog, also as an unexported field. The zero value is an empty secret and prints
// as nothing.
type Secret struct {
	value *string // a pointer: fmt prints unexported fields without asking them
	shown string
}

// NewSecret returns s as a secret.
func NewSecret(s string) Secret {
	if s == "" {
		return Secret{}
	}
	return Secret{value: &s, shown: hidden}
}

// NewSecretURL returns a URL as a secret that shows all but its passwords. What is
// no URL shows nothing but "***".
func NewSecretURL(s string) Secret {
	secret := NewSecret(s)
	if s != "" {
		secret.shown = maskURL(s)
	}
	return secret
}

// maskURL returns the URL with "***" in the place of its passwords.
func maskURL(s string) string {
	u, err := url.Parse(s)
	if first, rest, several := strings.Cut(s, ","); several && err == nil && isNATS(u.Scheme) {
		return maskURL(first) + "," + maskURL(rest)
	}
	if err != nil || u.Scheme == "" || u.Opaque != "" {
		return hidden
	}
	user := u.User
	_, secret := user.Password()
	if user != nil && !secret && isNATS(u.Scheme) { // the name alone is a token
		return u.Scheme + "://" + hidden + "@" + u.Host
	}
	if secret {
		u.User = url.UserPassword(user.Username(), hidden)
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return hidden
	}
	// Parameters of databases that are known to be no secrets.
	plain := []string{"sslmode", "sslrootcert", "application_name", "connect_timeout", "search_path", "target_session_attrs", "timezone", "dbname", "host", "port", "user"}
	for key := range query {
		if !slices.Contains(plain, key) {
			query.Set(key, hidden)
			secret = true
		}
	}
	if !secret {
		return s
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	return strings.ReplaceAll(u.String(), url.QueryEscape(hidden), hidden)
}

// minSecret is the shortest secret that is not a guess, in characters.
const minSecret = 24

// weakness returns why the secret keeps nobody out; empty if it may keep them out.
func (s Secret) weakness() string {
	text := strings.ToLower(s.Reveal())
	for _, word := range []string{"change-me", "change_me", "changeme", "password", "passwort", "secret", "placeholder", "example", "your-key", "your_key"} {
		if strings.Contains(text, word) {
			return "is a placeholder (" + word + ")"
		}
	}
	if n := utf8.RuneCountInString(text); n < minSecret {
		return fmt.Sprintf("has %d characters, and %d are the least", n, minSecret)
	}
	return ""
}

// Reveal returns the secret itself.
func (s Secret) Reveal() string {
	if s.value == nil {
		return ""
	}
	return *s.value
}

// Empty reports whether there is no secret.
func (s Secret) Empty() bool { return s.value == nil }

// Equal reports whether both are the same text.
func (s Secret) Equal(t Secret) bool { return s.Reveal() == t.Reveal() }

// String returns what may be seen.
func (s Secret) String() string { return s.shown }

// Format prints what may be seen, whatever the verb.
func (s Secret) Format(f fmt.State, verb rune) {
	text := s.shown
	if verb == 'v' && f.Flag('#') {
		text = fmt.Sprintf("config.Secret(%q)", s.shown)
	}
	_, _ = io.WriteString(f, text) // a printer has nobody to tell
}

// MarshalText returns what may be seen; encoding/json, YAML and log/slog use it too.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.shown), nil }
