package redact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core/redact"
	"bobbin/tests/seed"
)

// laws fails over a text for which Text breaks its promises: it is applied once and
// for all, keeps UTF-8 valid, and a marker is never much longer than a secret.
func laws(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string) {
	t.Helper()
	got := redact.Text(text)
	if again := redact.Text(got); again != got {
		t.Fatalf("%q: got %q, and then %q", text, got, again)
	}
	if utf8.ValidString(text) && !utf8.ValidString(got) {
		t.Fatalf("%q: got %q, which is not UTF-8", text, got)
	}
	if len(got) > 6*len(text) {
		t.Fatalf("%q: got %d bytes of %d", text, len(got), len(text))
	}
}

// pieces are what secrets and their surroundings are made of.
func pieces() []string {
	return []string{
		"password", "Passwort", "api_key", "token", "secret", "密码", "key", "Authorization", "Bearer ", "Basic ", "--", "-p", "curl -u ", "mysql ", "login ",
		"=", ": ", ":=", " is ", "|", ">", "<", "\"", "'", "\\\"", "\\n", "\n", " ", ",", ";", "&", ".", "/", "*", "$", "{", "}", "[", "]", "(", ")", "%3D",
		"4111 1111 1111 1111", "123-45-6789", "PIN", "pin", "4711", "[redacted: PIN]", "hunter2", "letmein", "a1b2c3d4e5f6", "admin:pw1x", "://", "u:p@h", "http://", "[redacted: password]", "[redacted: ", "redacted", "required", "é", "，", "\xff",
		"sk-abcdefghij0123456789", "AKIAQX7ZM2V9T4L8B3NR", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "eyJhbGciOiJI.eyJzdWIiOiIx.abcdefghij",
		"-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "MIIEpAIBAAKCAQEA7bq3", "\tx9==", "-----",
	}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	seed.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.SampledFrom(pieces()), 0, 14).Draw(t, "parts")
		laws(t, strings.Join(parts, ""))
	})
}

// Texts that random testing found.
func TestLawsOfFoundTexts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a token of letters behind a label within a value": "password=密码eyJhbGciOiJI.eyJzdWIiOiIx.abcdefghij",
	} {
		t.Run(name, func(t *testing.T) { laws(t, text) })
	}
}

func FuzzText(f *testing.F) {
	for _, p := range pieces() {
		f.Add(p)
		f.Add("password=" + p + " x")
	}
	f.Fuzz(func(t *testing.T, text string) { laws(t, text) })
}

// hostile are texts that make bad algorithms slow.
func hostile() map[string]string {
	return map[string]string{
		"prose": "The quick brown fox, and the token was not expected. ", "one word": "a", "labels": "password=", "labels in quotes": `"password": `, "open quotes": `token="`,
		"PEM begins": "-----BEGIN PRIVATE KEY-----", "PEM ends": "-----END PRIVATE KEY-----", "PEM lines": "-----END PRIVATE KEY-----\nMIIEpAIBAAKCAQEA7bq3\n",
		"URLs": "x://", "users": "x://a:", "JWT": "eyJ.", "JWT parts": "eyJhbGciOiJI.", "AWS": "AKIAQX7ZM2V9T4L8B3NR ", "bcrypt": "$2b$", "base64": "Zk3xQ9vT2mB7/+",
		"dashes": "-", "curl": "curl -u a ", "bearer": "Bearer ", "Chinese": "長", "labels in Chinese": "密码：", "markers": "[redacted: password]", "invalid": "\xff",
		"authorization": "Authorization: Bearer ", "sentences": "password is ", "equals": "token===", "numbers": "1\n",
		"secrets": "password=a%d1x ", "long secrets": "password=a%dx",
	}
}

// Every text is worked through in time: BenchmarkText prints the speed for 1 MiB.
func BenchmarkText(b *testing.B) {
	for name, unit := range hostile() {
		b.Run(name, func(b *testing.B) {
			text := repeated(unit, 1<<20)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				redact.Text(text)
			}
		})
	}
}

// repeated returns size bytes of the unit.
func repeated(unit string, size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		if strings.Contains(unit, "%d") {
			fmt.Fprintf(&b, unit, i)
		} else {
			b.WriteString(unit)
		}
	}
	return b.String()
}
