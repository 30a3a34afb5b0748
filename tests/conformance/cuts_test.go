package conformance_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/seed"
)

// cutKind is a connection that breaks at a random place.
type cutKind struct {
	name string
	// run asks the question and returns the text at the client, the stored text, and whether the
	// client got an error in place of the rest.
	run func(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool)
}

func cutKinds() []cutKind {
	return []cutKind{
		{"client, responses: goes on with starting_after", cutResponses},
		{"client, chat: repeats with the Idempotency-Key", cutRepeatedChat},
		{"client, chat: goes away, asks something else", cutChat},
		{"provider, chat", cutProviderChat},
		{"provider, stream of a chat", cutProviderStream},
		{"provider, responses", cutProviderResponses},
	}
}

// Wherever a connection breaks, the client ends with the stored text, or with an error that says
// so.
func TestDialectsCuts(t *testing.T) {
	t.Parallel()
	cuts := 12
	if os.Getenv("BOBBIN_TEST_LONG") != "" {
		cuts = 204
	}
	cl := startClient(t, clientKinds()[0])
	for database, url := range databases() {
		b := newBobbin(t, url(t))
		random := seed.Rand(t, 3)
		for _, kind := range cutKinds() {
			for i := range cuts / len(cutKinds()) {
				c := &conversation{bobbin: b, cl: cl, mark: fmt.Sprintf("%d %s", i, kind.name), model: "plain"}
				q := c.question("tell me at length, " + slowly)
				text, stored, failed := kind.run(t, c.inSession(), q, random)
				if !failed && (text != stored || !strings.HasPrefix(text, "answer to: ")) {
					t.Errorf("%s, %s: got %q, stored is %q", kind.name, database, text, stored)
				}
			}
		}
	}
}

// cutBytes is where the proxy cuts an answer; the longest ones are three times as long.
const cutBytes = 12_000

func cutResponses(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	text, stored = c.streamWithCuts(t, q, random)
	return text, stored, false
}

func cutRepeatedChat(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	made := c.newChat("create", []any{user(q)}, object{"stream": true})
	headers := map[string]string{headerCase: c.mark, "Idempotency-Key": "key of " + c.mark}
	made.Headers = cutAfter(headers, random.IntN(cutBytes))
	await(t, c.cl.begin(t, made))
	made.Headers = headers
	text = deltas(t, c.do(t, made).events)
	messages := c.log(t, c.session())
	wantEqual(t, "messages after a repeated request", len(messages), 2)
	return text, messages[1].Content, false
}

func cutChat(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	made := c.newChat("create", []any{user(q)}, object{"stream": true})
	made.Headers = cutAfter(made.Headers, 500+random.IntN(cutBytes))
	got := await(t, c.cl.begin(t, made))
	text = deltas(t, got.events)
	next := c.question("what now?")
	c.history = []any{user(q), assistant(text)}
	c.ask(t, next)
	// The log goes on with what the client has: with the canceled answer, which may be a little longer,
	// or if that was complete before the connection's end was noticed, with a branch.
	messages := slices.DeleteFunc(c.log(t, c.session()), func(m core.Message) bool { return !m.OnPath })
	wantEqual(t, "messages on the path", len(messages), 4)
	stored = messages[1].Content
	if !strings.HasPrefix(normalize(stored), normalize(text)) {
		return text, stored, false
	}
	return stored, stored, got.fault != nil
}

// normalize returns the text with one space between words, as histories are compared.
func normalize(text string) string { return strings.Join(strings.Fields(text), " ") }

// breakAt returns the question with a break of the provider's connection.
func breakAt(q string, random *rand.Rand) string {
	return fmt.Sprintf("%s at piece %d %s", breakOnce, random.IntN(answerPieces), q)
}

func cutProviderChat(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	text = c.ask(t, breakAt(q, random)).text()
	return text, answerIn(c.log(t, c.session())), false
}

func cutProviderStream(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	got := await(t, c.cl.begin(t, c.newChat("create", []any{user(breakAt(q, random))}, object{"stream": true})))
	if got.fault != nil && got.fault.Message == "" {
		t.Errorf("got %s, want a message", got.fault)
	}
	return deltas(t, got.events), answerIn(c.log(t, c.session())), got.fault != nil
}

// answerIn returns the text of the last answer.
func answerIn(messages []core.Message) string {
	for _, m := range slices.Backward(messages) {
		if m.Role == core.RoleAssistant {
			return m.Content
		}
	}
	return ""
}

func cutProviderResponses(t *testing.T, c *conversation, q string, random *rand.Rand) (text, stored string, failed bool) {
	t.Helper()
	out := c.do(t, c.newResponse("create", breakAt(q, random), object{"stream": true}))
	texts, done := map[int]string{}, ""
	for _, raw := range out.events {
		switch e := decode[responseEvent](t, raw); e.Type {
		case "response.output_text.delta":
			texts[e.Index] += e.Delta
		case "response.output_text.done":
			if e.Text != "" { // else the model began anew
				text += texts[e.Index]
			}
		case "response.completed":
			done = e.Response.text()
		}
	}
	wantEqual(t, "text of the response", strings.TrimSpace(done), strings.TrimSpace(text))
	return text, answerIn(c.log(t, c.session())), false
}
