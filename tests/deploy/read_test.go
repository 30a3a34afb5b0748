package deploy_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"bobbin/app/core/config"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

// afterGrace is what a stop may take besides the grace period: runs that are handed back
// have 10 s to return, and requests 5 s to be answered.
const afterGrace = 20 * time.Second

// read returns a file of deploy/.
func read(t *testing.T, name string) string {
	t.Helper()
	raw := must.Get(os.ReadFile(filepath.Join("../../deploy", name)))(t)
	return string(raw)
}

// documents decodes the YAML documents of a file. A field that T does not have is no
// fault: these files have more than the tests look at.
func documents[T any](t *testing.T, name string) []T {
	t.Helper()
	return decode[T](t, name, read(t, name))
}

// decode is documents for a text.
func decode[T any](t *testing.T, name, text string) []T {
	t.Helper()
	var all []T
	for d := yaml.NewDecoder(strings.NewReader(text)); ; {
		var one T
		err := d.Decode(&one)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
}

// providers are the variables that are not Bobbin's own.
func providers() []string {
	return []string{
		"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY",
		"AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_CLOUD_PROJECT",
	}
}

// interpolation is what compose puts in the place of ${NAME}, ${NAME:?…} and ${NAME:-…}.
var interpolation = regexp.MustCompile(`\$\{([A-Z_]+)(:[?-][^}]*)?\}`)

// strongText is a secret as an operator makes one.
const strongText = "0123456789abcdef0123456789abcdef"

// filled fills in what an operator sets.
func filled(value string) string {
	return interpolation.ReplaceAllStringFunc(value, func(s string) string { return operatorValue(interpolation.FindStringSubmatch(s)[1]) })
}

// operatorValue is what an operator sets a variable to that the file leaves open.
func operatorValue(name string) string {
	switch name {
	case "BOBBIN_AUTH_KEYS":
		return "web:" + strongText
	case "BOBBIN_DATABASE_URL":
		return "postgres://bobbin:" + strongText + "@db.example/bobbin?sslmode=verify-full"
	default:
		return strongText
	}
}

// loaded returns the configuration that the program makes of the environment and flags,
// and fails the test for a variable that it does not know.
func loaded(t *testing.T, where string, env, flags map[string]string) config.Config {
	t.Helper()
	known := map[string]bool{}
	for _, k := range config.Keys() {
		known[k.Env()] = true
	}
	for _, name := range providers() {
		known[name] = true
	}
	for name := range env {
		if !known[name] {
			t.Errorf("%s: %s sets nothing", where, name)
		}
	}
	cfg, err := load(t, env, flags)
	compare.Error(t, where+": the program would not start", nil, err)
	return cfg
}

// load loads the settings as the program does.
func load(t *testing.T, env, flags map[string]string) (config.Config, error) {
	t.Helper()
	cfg, _, err := config.Load(config.Options{
		Dir: t.TempDir(), UserDir: t.TempDir(), Flags: flags,
		Env: func(name string) string { return filled(env[name]) },
	})
	return cfg, err
}

// enough fails the test if the process is killed before it has stopped.
func enough(t *testing.T, where string, has, grace time.Duration) {
	t.Helper()
	if want := grace + afterGrace; has <= 0 || has < want {
		t.Errorf("%s: killed after %s, want %s or more: the grace period and %s", where, has, want, afterGrace)
	}
}

// lines returns the lines that are neither empty nor comments.
func lines(text string) []string {
	var list []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			list = append(list, line)
		}
	}
	return list
}
