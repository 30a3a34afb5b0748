package commandline_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"bobbin/tests/apptest"
)

const (
	asJSON  = "application/json"
	asForm  = "multipart/form-data; boundary=x"
	asLines = "application/jsonl"
	line    = `{"role":"user","content":"hello"}` + "\n"
	mib     = 1 << 20
)

// Attacks that need a running program, carried out against the one of this source. Run it with make show-attacks.
func TestShowAttacks(t *testing.T) {
	if !apptest.IsLong() {
		t.Skip("make show-attacks")
	}
	v := newTarget(t)
	defer v.table.Log(t) // also when an attack ended the server
	v.attackMemory(t)
	v.attackShares(t)
	v.attackRules(t)
	v.attackSearch(t)
	v.command(t, "the token to a proxy", TestCommandLineUsesNoProxy)
	v.command(t, "a folder with a bobbin.yaml", TestForeignFolder)
	v.command(t, "escapes for the terminal", TestTerminalsAreNotSteered, TestPipesAreCleaned)
	v.command(t, "symbolic links in the data folder", TestPreparedDataFolder)
}

// formField is the beginning of a form with one field.
func formField(attributes, value string) string {
	return "--x\r\nContent-Disposition: form-data; " + attributes + "\r\n\r\n" + value
}

// jsonBomb is a message of the size with a list of empty objects.
func jsonBomb(field string, size int) string {
	return `{"content":"x","run":false,"role":"assistant","` + field + `":[` + strings.Repeat("{},", size/3-30) + "{}]}"
}

// attackMemory sends what once took many times its size in memory.
func (v *target) attackMemory(t *testing.T) {
	messages := v.messages(aliceKey)
	v.attack(t, "form of 168 MiB with a JSON bomb", func(t *testing.T) string {
		return v.want(t, "413", aliceKey, "POST", messages, asForm, formField(`name="message"`, jsonBomb("parts", 168*mib)+"\r\n--x--\r\n"))
	})
	v.attack(t, "JSON bomb of 8 MiB", func(t *testing.T) string {
		return v.want(t, "422", aliceKey, "POST", messages, asJSON, jsonBomb("tool_calls", 8*mib))
	})
	v.attack(t, "3 JSON bombs at once", func(t *testing.T) string {
		var bombs sync.WaitGroup
		for range 3 {
			bombs.Go(func() { v.want(t, "422 429", aliceKey, "POST", messages, asJSON, jsonBomb("tool_calls", 8*mib)) })
		}
		bombs.Wait()
		return "422 or 429"
	})
}

// attackShares holds what others need, with bodies that do not end.
func (v *target) attackShares(t *testing.T) {
	slow := `{"content":"` + strings.Repeat("a", 8*mib-50)
	alices, bobs := v.messages(aliceKey), v.messages(bobKey)
	v.attack(t, "118 slow bodies of 8 MiB", func(t *testing.T) string {
		n := v.hold(t, 118, aliceKey, alices, asJSON, slow)
		wantSome(t, n)
		return fmt.Sprintf("%d accepted; another owner %s, a message %s", n, v.want(t, "200", bobKey, "GET", bobs, asJSON, ""),
			v.want(t, "201", bobKey, "POST", bobs, asJSON, `{"content":"x","run":false}`))
	})
	v.attack(t, "slow bodies and forms of 3 end users", func(t *testing.T) string {
		n := 0
		for i, token := range v.users {
			n += v.hold(t, 3, token, v.messages(token), asJSON, slow)
			n += v.hold(t, 1, token, v.messages(token), asForm, formField(`name="file"; filename="a"`, strings.Repeat(" ", []int{127, 127, 1}[i]*mib)))
		}
		wantSome(t, n)
		return fmt.Sprintf("%d accepted; the owner's key %s, an upload %s", n, v.want(t, "200", aliceKey, "GET", alices, asJSON, ""),
			v.want(t, "201", aliceKey, "POST", "/blobs", asForm, formField(`name="file"; filename="a.txt"`, "text\r\n--x--\r\n")))
	})
	v.attack(t, "slow imports", func(t *testing.T) string {
		n := v.hold(t, 4, aliceKey, alices+"/import", asLines, line)
		wantSome(t, n)
		return fmt.Sprintf("%d accepted; another owner's import %s", n, v.want(t, "200", bobKey, "POST", bobs+"/import", asLines, line))
	})
}

// wantSome fails if nothing is held: an attack that does not begin shows nothing.
func wantSome(t *testing.T, held int) {
	t.Helper()
	if held == 0 {
		t.Error("got no request that waits for its end, want some")
	}
}

// attackRules does what a caller may not.
func (v *target) attackRules(t *testing.T) {
	messages := v.messages(aliceKey)
	v.attack(t, "models that are not configured", func(t *testing.T) string {
		for _, name := range []string{"openai/o1-pro", "o3-pro", "gpt-4o-mini", "openai/gpt-4o-mini", "ollama/whatever", "openai/../../../x?y"} {
			v.want(t, "422", aliceKey, "POST", messages, asJSON, `{"content":"hi","model":"`+name+`"}`)
		}
		asked := v.model.requests.Load()
		v.want(t, "200", aliceKey, "POST", messages, asJSON, `{"content":"hi","model":"cheap"}`)
		if asked != 0 || v.model.requests.Load() == 0 {
			t.Errorf("%d connections to the provider, %d with the configured model, want only those", asked, v.model.requests.Load())
		}
		return "422"
	})
	v.attack(t, "tags in the Markdown export", func(t *testing.T) string {
		v.want(t, "201", aliceKey, "POST", messages, asJSON, `{"run":false,"content":"a\\<script>alert(1)</script> b\\<img src=x onerror=alert(2)>"}`)
		_, text := v.send(t, aliceKey, "GET", strings.TrimSuffix(messages, "/messages")+"/export?format=markdown", asJSON, "")
		if strings.Contains(text, "<script") || strings.Contains(text, "<img") || !strings.Contains(text, "alert(1)") {
			t.Errorf("got %s, want the message without a tag", text)
		}
		return "no tag"
	})
	v.attack(t, "wrong keys from the address of a valid one", func(t *testing.T) string {
		last := 0
		for i := range 70 {
			last, _ = v.send(t, fmt.Sprint("wrong-", i), "GET", "/sessions", asJSON, "")
		}
		if last != 429 {
			t.Errorf("got %d for the last wrong key, want 429: this shows nothing", last)
		}
		return fmt.Sprintf("%d; a valid key %s", last, v.want(t, "200", carlKey, "GET", "/sessions", asJSON, ""))
	})
	v.attack(t, "placeholders and short keys", func(t *testing.T) string {
		for setting, args := range map[string][]string{
			"BOBBIN_AUTH_KEYS=web:change-me": {"serve"}, "BOBBIN_AUTH_KEYS=web:a": {"serve"}, "BOBBIN_NATS_SECRET=change-me-change-me-change-me": {"config", "show"},
		} {
			name, _, _ := strings.Cut(setting, "=")
			got := newShell(t, setting, "BOBBIN_DEFAULT_LLM=demo", "BOBBIN_ADDR=127.0.0.1:0").run(t, "", args...)
			if got.code == 0 || !strings.Contains(got.errs, name) {
				t.Errorf("%s: got %d, %s%s, want it refused", setting, got.code, got.out, got.errs)
			}
		}
		return "no start"
	})
}

// attackSearch asks what once took up to 24 seconds of a processor.
func (v *target) attackSearch(t *testing.T) {
	history := fmt.Sprintf("{\"role\":\"user\",\"content\":%q}\n{\"role\":\"assistant\",\"content\":\"ok\"}\n", strings.Repeat("a b ", 65_000))
	v.want(t, "200", bobKey, "POST", v.messages(bobKey)+"/import", asLines, strings.Repeat(history, 100))
	for name, q := range map[string]string{
		"a word": "a", "a phrase": `%22` + strings.Repeat("a+b+", 30) + `%22`, "a phrase that is not there": `%22` + strings.Repeat("a+b+", 29) + `b+b%22`,
		"three phrases": `%22a+b%22+%22a+b+a+b%22+%22a+b+a+b+a+b%22`,
	} {
		v.attack(t, "search of 26 MB for "+name, func(t *testing.T) string {
			before := v.cpu(t)
			status := v.want(t, "200 503", bobKey, "GET", "/search?limit=200&q="+q, asJSON, "")
			if took := v.cpu(t) - before; took > 10*time.Second {
				t.Errorf("it took %v of a processor", took)
			}
			return status
		})
	}
}
