package tools_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/agents/tools"
	"bobbin/app/core"
	"bobbin/tests/must"
)

// Secrets are hidden as they are, as JSON writers escape them, and by their lines.
func TestHideSecrets(t *testing.T) {
	t.Parallel()
	values := map[string]string{"TOKEN": "a/b<c&d>e+f==", "KEY": "-----BEGIN-----\nMIIEvQIBADAN\n-----END KEY-----", "PIN": "1234", "PASSWORD": `tök/en"sec<&>😀`}
	secrets := tools.Environment(func(name string) string { return values[name] }).Secrets(core.ToolDefinition{Bearer: "TOKEN", Env: []string{"KEY", "PIN", "PATH", "PASSWORD"}})
	quoted := must.Get(json.Marshal("token " + values["TOKEN"]))(t)
	for text, want := range map[string]string{
		"Bearer a/b<c&d>e+f==":                                   "Bearer ***",
		string(quoted):                                           `"token ***"`,
		`{"token":"a\/b<c&d>e+f=="}`:                             `{"token":"***"}`,
		`{"Python":"t\u00f6k/en\"sec<&>\ud83d\ude00"}`:           `{"Python":"***"}`,
		`{"PHP":"t\u00f6k\/en\"sec<&>\ud83d\ude00"}`:             `{"PHP":"***"}`,
		`{"upper":"t\u00F6k/en\"sec<&>\uD83D\uDE00"}`:            `{"upper":"***"}`,
		`{"JS":"tök/en\"sec<&>😀"}`:                               `{"JS":"***"}`,
		`{"Go":"tök/en\"sec\u003c\u0026\u003e😀"}`:                `{"Go":"***"}`,
		"key:\n" + values["KEY"]:                                 "key:\n***",
		"line MIIEvQIBADAN of the key":                           "line *** of the key",
		"pins are too short to be hidden: 1234, and /usr/bin is": "pins are too short to be hidden: 1234, and /usr/bin is",
	} {
		if got := tools.HideSecrets(text, secrets); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
