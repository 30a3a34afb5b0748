package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"bobbin/app/core/config"
	"bobbin/tests/must"
)

// FuzzLoad: whatever the file, Load answers with valid settings or says what is
// wrong.
func FuzzLoad(f *testing.F) {
	for _, file := range []string{"default_llm: a\nmodels: [{name: a, provider: demo}]\n", "addr: [", "a: &a [*a]", "limits: {run_time: 1s, <<: {x: y}}", "models:\n- *x\n", "? {a: b}\n: c\n", "auth.keys: [[a]]\n", "log: &l {level: info}\nnats: *l\n", "addr: !!binary aGk=\n", "limits.queued_runs: 99999999999999999999\n"} {
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		path := filepath.Join(t.TempDir(), "bobbin.yaml")
		must.Do(t, os.WriteFile(path, []byte(file), 0o600))
		got, _, err := config.Load(config.Options{File: path, Env: func(string) string { return "" }})
		if err != nil {
			return
		}
		if err := got.Validate(); err != nil {
			t.Errorf("Load let pass what is not valid: %v", err)
		}
	})
}
