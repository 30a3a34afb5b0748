package redact_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"bobbin/app/core/redact"
	"bobbin/tests/compare"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// key builds a key that is none, so that no scanner of repositories finds one here.
func key(parts ...string) string { return strings.Join(parts, "") }

// Keys of providers, wherever they stand.
func TestShapes(t *testing.T) {
	t.Parallel()
	random := "Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"
	keys := map[string]string{
		key("sk", "-", random):                                                       "api key",
		key("sk", "-proj-", random, "_", random):                                     "api key",
		key("sk", "-ant-api03-", random, "-", random, "AA"):                          "api key",
		key("sk", "-or-v1-", strings.Repeat("a1b2c3d4", 8)):                          "api key",
		key("AKIA", "QX7ZM2V9T4L8B3NR"):                                              "api key",
		key("AI", "za", random, "abc"):                                               "api key",
		key("gh", "p_", random, "abcd"):                                              "token",
		key("gh", "s_", random, "abcd"):                                              "token",
		key("github", "_pat_11ABCDEFG0", random, "_", random):                        "token",
		key("gl", "pat-", random[:20]):                                               "token",
		key("xo", "xb-123456789012-1234567890123-", random[:24]):                     "token",
		key("xo", "xp-123456789012-", random):                                        "token",
		key("xo", "xe.xoxb-1-", random):                                              "token",
		key("xo", "xe-1-", random):                                                   "token",
		key("sk", "_live_", random[:24]):                                             "api key",
		key("rk", "_test_", random[:24]):                                             "api key",
		key("wh", "sec_", random):                                                    "secret",
		key("np", "m_", random, "abcd"):                                              "token",
		key("h", "f_", random, "ab"):                                                 "token",
		key("S", "G.", random[:22], ".", random, "abcdefghijk"):                      "api key",
		key("ey", "JhbGciOiJIUzI1NiJ9.", "eyJzdWIiOiIxMjM0NTY3ODkwIn0.", random):     "token",
		key("$2", "b$12$", strings.Repeat("abcdefghijkLMNOPQRSTUV./012345", 2)[:53]): "secret",
		key("bo", "b_", random, random[:11]):                                         "api key",
	}
	for secret, kind := range keys {
		t.Run(secret[:6], func(t *testing.T) {
			t.Parallel()
			for _, around := range []string{"%", "The key is %.", "(%)", `{"a":"%","b":1}`, `a\n%\nb`, "export X=%; ls", "\x1b[32m%\x1b[0m", "https://x.org/?k=%&a=b", "密钥是%，请用", "`%`", "X%3D%"} {
				text := strings.Replace(around, "%", secret, 1)
				if around == "X%3D%" {
					text = "X%3D" + secret
				}
				got := redact.Text(text)
				compare.True(t, !strings.Contains(got, secret[len(secret)/2:]) && strings.Contains(got, "[redacted: "+kind+"]"), "got %q, want no %s in it", got, kind)
			}
		})
	}
}

// Secrets that stand behind a label, in a URL or in PEM, word for word.
func TestLabeled(t *testing.T) {
	t.Parallel()
	pem := key("-----BEGIN RSA PRIV", "ATE KEY-----\n", strings.Repeat("MIIEpAIBAAKCAQEA7bq3\n", 3), "x9==\n-----END RSA PRIV", "ATE KEY-----")
	tests := []struct{ name, in, want string }{
		{"environment", "DB_PASSWORD=hunter2\nPORT=80", "DB_PASSWORD=[redacted: password]\nPORT=80"},
		{"weak", "password=letmein", "password=[redacted: password]"},
		{"numbers", "password: 123456", "password: [redacted: password]"},
		{"command line", "psql --password hunter2 -h db", "psql --password [redacted: password] -h db"},
		{"keys of Slack", "BOBBIN_SLACK_TOKEN_KEY=Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jKZk3xQ9vT2mA= BOBBIN_SLACK_CLIENT_SECRET=9f8e7d6c5b4a", "BOBBIN_SLACK_TOKEN_KEY=[redacted: api key] BOBBIN_SLACK_CLIENT_SECRET=[redacted: secret]"},
		{"option", "--token=abc12345def x", "--token=[redacted: token] x"},
		{"YAML", "db:\n  password: tr0ub4dor\n  port: 5432", "db:\n  password: [redacted: password]\n  port: 5432"},
		{"JSON", `{"api_key": "a1b2c3d4e5", "n": 1}`, `{"api_key": "[redacted: api key]", "n": 1}`},
		{"JSON in JSON", `{"body":"{\"password\":\"pa$$w0rd1\",\"x\":1}"}`, `{"body":"{\"password\":\"[redacted: password]\",\"x\":1}"}`},
		{"camel case", `clientSecret: 'q8-x_7zz'`, `clientSecret: '[redacted: secret]'`},
		{"code", `const password = "correct-horse";`, `const password = "[redacted: password]";`},
		{"typed code", `password: str = "tr0ub4dor"`, `password: str = "[redacted: password]"`},
		{"map", `cfg["password"] = "tr0ub4dor"`, `cfg["password"] = "[redacted: password]"`},
		{"arguments", "connect(host, password=hunter2, ssl=True)", "connect(host, password=[redacted: password], ssl=True)"},
		{"query", "https://x.org/a?token=ab12cd34ef&page=2", "https://x.org/a?token=[redacted: token]&page=2"},
		{"connection string", "Server=db;User Id=sa;Password=S3cret!x;Encrypt=yes", "Server=db;User Id=sa;Password=[redacted: password];Encrypt=yes"},
		{"XML", "<password>hunter2</password>", "<password>[redacted: password]</password>"},
		{"Markdown", "**Password:** hunter2", "**Password:** [redacted: password]"},
		{"said", "My password is Tr0ub4dor&3, keep it.", "My password is [redacted: password], keep it."},
		{"said in German", "Das Passwort lautet: Sommer2024!", "Das Passwort lautet: [redacted: password]"},
		{"said in Chinese", "密码：hunter22，请记住", "密码：[redacted: password]，请记住"},
		{"said in Russian", "Пароль: hunter22", "Пароль: [redacted: password]"},
		{"API key with a blank", "API key: 9f8e7d6c5b4a", "API key: [redacted: api key]"},
		{"header", "Authorization: Bearer abc.def-123456", "Authorization: Bearer [redacted: token]"},
		{"header of curl", `curl -H "Authorization: Basic dXNlcjpwYXNz" https://x.org`, `curl -H "Authorization: Basic [redacted: token]" https://x.org`},
		{"header in JSON", `{"Authorization":"Bearer abc123def456ghi"}`, `{"Authorization":"Bearer [redacted: token]"}`},
		{"bearer", "sent with Bearer 0123456789abcdef0123", "sent with Bearer [redacted: token]"},
		{"key header", "X-Api-Key: 0123456789abcdef", "X-Api-Key: [redacted: api key]"},
		{"npmrc", "//registry.npmjs.org/:_authToken=00000000-1111-2222-3333-44445555666a", "//registry.npmjs.org/:_authToken=[redacted: token]"},
		{"URL", "postgres://app:s3cret@db:5432/x?sslmode=off", "postgres://app:[redacted: password]@db:5432/x?sslmode=off"},
		{"URL, odd password", "see redis://:p@ss@h and amqp://u:a/b1@h/v", "see redis://:[redacted: password]@h and amqp://u:[redacted: password]@h/v"},
		{"AWS", "aws_access_key_id = " + key("AKIA", "QX7ZM2V9T4L8B3NR") + "\naws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY",
			"aws_access_key_id = [redacted: api key]\naws_secret_access_key = [redacted: secret]"},
		{"AWS, without labels", key("AKIA", "QX7ZM2V9T4L8B3NR") + ",wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzKEY", "[redacted: api key],[redacted: secret]"},
		{"PEM", "a\n" + pem + "\nb", "a\n[redacted: private key]\nb"},
		{"PEM in JSON", `{"k":"` + strings.ReplaceAll(pem, "\n", `\n`) + `\n"}`, `{"k":"[redacted: private key]\n"}`},
		{"PEM with numbers of lines", "     1\t" + strings.ReplaceAll(pem, "\n", "\n     2\t"), "     1\t[redacted: private key]"},
		{"PEM without an end", "a\n" + pem[:strings.Index(pem, "x9==")] + "\nBut then it worked.", "a\n[redacted: private key]\n\nBut then it worked."},
		{"PEM without a beginning", "…\n" + pem[strings.Index(pem, "MII"):] + "\nb", "…\n[redacted: private key]\nb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := redact.Text(tt.in)
			compare.Equal(t, "redacted", tt.want, got)
			compare.Equal(t, "the second time", got, redact.Text(got))
		})
	}
}

// What looks like a secret and is none is what conversations are about: it stays.
func TestKept(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main)",
		"id 123e4567-e89b-12d3-a456-426614174000, run 0190b5a2-7c3e-7def-8abc-1234567890ab",
		"sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08  go.sum",
		"h1:2Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jKabcdefgh1k=",
		"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==",
		"ETag: \"33a64df551425fcc55e4d42a148795d9f25f89d4\"",
		"password = os.getenv(\"DB_PASSWORD\")", "password: string;", "password: str", "password=None", "password=$DB_PASSWORD", "password: ${DB_PASSWORD}",
		"password = user.password", "password: process.env.DB_PASSWORD,", "login(password=password)", "this.password = password;", "password: *****", "password=<your password>",
		"The password is required.", "password: required", "Password: incorrect", "the password was wrong", "\"forgot_password\": \"Forgot your password?\"", "placeholder=\"password\"",
		"password := flag.String(\"password\", \"\", \"the password\")", "type=\"password\"", "if password == \"\" {", "PASSWORD_FILE=/run/secrets/db", "PWD=/home/ann/work",
		"token = parser.next()", "token := lexer.Next()", "token: Token", "max_tokens: 4096", "\"input_tokens\": 123, \"output_tokens\": 45",
		"Unexpected token } in JSON at position 42", "SyntaxError: Unexpected token '<'", "tokens=81920", "token = tokens[i1]", "token: ${{ secrets.GITHUB_TOKEN }}", "Authorization: Bearer $TOKEN",
		"secret: true", "secretName: db-credentials", "secret: db-credentials", "kubectl get secret db-credentials", "primary_key: users_id_1", "cache_key=v1/users/42", "public_key: abc123def456",
		"api_key: str", "api_key=settings.api_key", "apiKey: process.env.OPENAI_API_KEY", "keyboard: qwertz1", "monkey=banana1",
		"http://localhost:8080/a@b", "https://medium.com/@ann/title", "git@github.com:ann/repo.git", "http://user@host/", "see ann@example.org: done", "postgres://${USER}:${PASS}@db/x",
		"-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG\n-----END CERTIFICATE-----", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEF\n-----END PUBLIC KEY-----",
		"The file begins with -----BEGIN PRIVATE KEY----- and then base64.",
		"class=\"sk-fading-circle sk-circle12\"", "task-queue-worker-with-a-long-name-1", "desk-1234567890123456789012", "npm_config_registry_url_for_all_packages", "ghp_", "sk-1", "eyJ.x.y", "AKIA",
		"--- PASS: TestWithColons/127.0.0.1:0 (0.00s)", `append(env, "PWD="+dir)`, `"password=" + p + "&x"`, "FTINTRP_W_D: \"FTINTRP.W.D\"", "FS_IOC_REMOVE_ENCRYPTION_KEY = 0xc0406618",
		"the private key is *ed25519.PrivateKey here", "const maxSecret = 4096", "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTest-jiObOV", "CONSISTENT_KEY = 'fs.s3.consistent'", "session_auth=s3_disable_express",
		"<code>, passphrase: &lt;string1&gt;</code>", "/etc/passwd: text1", "`Bearer <secret>` or `X-API-Key: <secret>`.",
		"Bearer tokens are checked first", "the bearer of this note", "compass: north1", "bypass=true1", "pass: 12, fail: 0", "ok  \tbobbin/app\t1.2s", "mkdir -p build", "docker run -p 8080:80 nginx", "tar -u a:b",
	} {
		compare.Equal(t, "redacted", text, redact.Text(text))
	}
}

// Numbers of cards, social security numbers and PINs; other numbers stay.
func TestNumbers(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"My card is 4111 1111 1111 1111, exp 12/29":    "My card is [redacted: card number], exp 12/29",
		"5500-0055-5555-5559 and 378282246310005.":     "[redacted: card number] and [redacted: card number].",
		`{"card":"6011111111111117"}`:                  `{"card":"[redacted: card number]"}`,
		"SSN 123-45-6789":                              "SSN [redacted: social security number]",
		"social security number: 078 05 1120!":         "social security number: [redacted: social security number]!",
		"SSN: 123456789, my ssn is 219099999":          "SSN: [redacted: social security number], my ssn is [redacted: social security number]",
		"Social Security number 078051120.":            "Social Security number [redacted: social security number].",
		"My PIN is 4711. The pin: 123456":              "My PIN is [redacted: PIN]. The pin: [redacted: PIN]",
		"Meine Geheimzahl ist 0815, PIN-Code 99887766": "Meine Geheimzahl ist [redacted: PIN], PIN-Code [redacted: PIN]",
	} {
		compare.Equal(t, "redacted", want, redact.Text(text))
	}
	for _, text := range []string{
		"4111 1111 1111 1112", "order 1234567890123456", "1732266245123", "1732266245123456789", "call 555-12-34567 or 000-12-3456", "v4111111111111111",
		"order 123456789", "SSN 000456789", "SSN 1234567890", "the lessn 123456789", "SSN unknown. Order 123456789", "pin 4000 of the connector", "PIN the version. 1234 users", "pinned 1234", "id 4111-1111", "2026-11-22 09:44:00", "phone 030-12345678", "PIN x12345",
	} {
		compare.Equal(t, "harmless text", text, redact.Text(text))
	}
}

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
	must.True(t, !utf8.ValidString(text) || utf8.ValidString(got), "%q: got %q, which is not UTF-8", text, got)
	must.True(t, len(got) <= 6*len(text), "%q: got %d bytes of %d", text, len(got), len(text))
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
