package summarize_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/summarize"
	"bobbin/tests/compare"
	"bobbin/tests/llmtest"
	"bobbin/tests/must"
)

// reader is a strategy that keeps what it was given.
type reader struct{ got []core.Message }

func (r *reader) Summarize(_ context.Context, req summarize.Request) (summarize.Result, error) {
	r.got = req.Messages
	return summarize.Result{Content: good}, nil
}

// stored are messages whose texts were left in storage, and what loads them.
type stored struct {
	whole   []core.Message
	largest int // bytes of texts that were loaded at once
}

// request returns the request for a summary of them.
func (s *stored) request() summarize.Request {
	req := summarize.Request{Limit: 800, Replaces: 1 << 30, Load: s.load}
	for _, m := range s.whole {
		req.Messages = append(req.Messages, m.WithoutTexts())
	}
	return req
}

func (s *stored) load(_ context.Context, list []core.Message) ([]core.Message, error) {
	size := 0
	var out []core.Message
	for _, m := range list {
		m = s.whole[m.Seq-1]
		out, size = append(out, m), size+m.TextBytes()
	}
	s.largest = max(s.largest, size)
	return out, nil
}

func size(messages []core.Message) int {
	n := 0
	for _, m := range messages {
		n += m.TextBytes()
	}
	return n
}

// What fits the material is given to the strategy as it is, wherever it was.
func TestMaterialIsLoaded(t *testing.T) {
	t.Parallel()
	messages := append(talk(30, 200), assistant(31, "I look.", core.ToolCall{ID: "a", Name: "shell", Arguments: `{"command":"ls"}`}), toolResult(32, "a", "a.go"))
	s, r := &stored{whole: messages}, &reader{}
	req := s.request()
	req.Messages[7] = messages[7] // came with its texts
	must.Get(summarize.New(r, counter{}).Summarize(t.Context(), req))(t)
	for i := range messages {
		messages[i].Parts, r.got[i].Parts = nil, nil
		if len(messages[i].ToolCalls) == 0 {
			r.got[i].ToolCalls = nil
		}
	}
	compare.Equal(t, "messages", messages, r.got)
}

// A backlog of any size is read in slices, and what a summary is made of is bounded.
// Short messages stay whole; of long ones the beginning and the end are there.
func TestMaterialIsBounded(t *testing.T) {
	t.Parallel()
	s, r := &stored{}, &reader{}
	for i := range int64(60) {
		m := user(i+1, "in short: yes")
		if i%2 == 0 {
			m.Content = "the beginning\n" + strings.Repeat("lorem ipsum ", 1<<20/12) + "\nthe end"
		}
		s.whole = append(s.whole, m)
	}
	s.whole[2] = assistant(3, "", core.ToolCall{ID: "a", Name: "write", Arguments: strings.Repeat("x", 1<<20)}, core.ToolCall{ID: "b", Name: "write", Arguments: "{}"})
	must.Get(summarize.New(r, counter{}).Summarize(t.Context(), s.request()))(t)
	got := size(r.got)
	compare.True(t, got <= summarize.MaxMaterial+60*64 && got >= summarize.MaxMaterial*9/10, "the summary is made of %d bytes, want all that there may be and no more: %d", got, summarize.MaxMaterial)
	compare.True(t, s.largest <= 5<<20, "%d bytes were loaded at once, want slices of 4 MiB", s.largest)
	for i, m := range r.got {
		switch {
		case i == 2:
			if n := len(m.ToolCalls[0].Arguments); n < 100<<10 || n > 400<<10 || m.ToolCalls[1].Name != "write" {
				t.Errorf("got %d bytes of the arguments and %+v", n, m.ToolCalls[1])
			}
		case i%2 == 1 && m.Content != "in short: yes":
			t.Errorf("message %d: got %.40q, want a short message whole", i, m.Content)
		case i%2 == 0 && (!strings.HasPrefix(m.Content, "the beginning\n") || !strings.HasSuffix(m.Content, "\nthe end") || !strings.Contains(m.Content, "bytes left out…]")):
			t.Errorf("message %d: got %d bytes, want its beginning, its end and a mark", i, len(m.Content))
		}
	}
}

// No half of a secret is left where a message is cut.
func TestSecretsAreRedactedWhereMessagesAreCut(t *testing.T) {
	t.Parallel()
	const share = 256 << 10 // of 32 messages of 1 MiB
	secrets := " " + secretKey + " " + secretURL + " "
	filler := strings.Repeat("lorem ipsum ", 1<<20/12)
	for _, at := range []int{share - share/3, len(filler) + len(secrets) - share/3} {
		s, r := &stored{}, &reader{}
		for i := range 32 {
			from := at - len(secrets)*i/32
			s.whole = append(s.whole, user(int64(i+1), filler[:from]+secrets+filler[from:]))
		}
		must.Get(summarize.New(r, counter{}).Summarize(t.Context(), s.request()))(t)
		for i, m := range r.got {
			compare.True(t, len(m.Content) <= share+64, "cut at %d, message %d: got %d bytes, want about %d", at, i, len(m.Content), share)
			for _, secret := range []string{secretKey[8:], secretPassword} {
				for n := 6; n <= len(secret); n++ {
					part := secret[n-6 : n]
					compare.True(t, !strings.Contains(m.Content, part), "cut at %d, message %d: %q is in it", at, i, part)
				}
			}
		}
	}
}

// What cannot be loaded is no reason for a summary without a model: the caller tries
// again later.
func TestMaterialThatCannotBeLoaded(t *testing.T) {
	t.Parallel()
	away := errors.New("the database is away")
	s := &stored{whole: talk(4, 50)}
	req := s.request()
	req.Load = func(context.Context, []core.Message) ([]core.Message, error) { return nil, away }
	if res, err := over(nil).Summarize(t.Context(), req); !errors.Is(err, away) || res.Content != "" {
		t.Errorf("got %q, %v, want the error", res.Content, err)
	}
}

// What nobody may see again, assembled so that no scanner of repositories stumbles.
const (
	secretKey      = "sk" + "-proj-Zk3xQ9vT2mB7nL4pR8sW1yC6dF5gH0jK"
	secretPassword = "hunter2-horse"
	secretURL      = "postgres://app:" + secretPassword + "@db:5432/shop"
)

// leaky is a request with secrets in every text that it has.
func leaky() summarize.Request {
	req := request()
	parts := user(20, "")
	parts.Parts = []core.Part{{Type: "text", Text: "in parts: " + secretKey}, {Type: "file", Name: secretKey + ".txt"}}
	req.Messages = append(req.Messages,
		user(11, "My key is "+secretKey+" and I use "+secretURL),
		assistant(12, "I try password="+secretPassword, core.ToolCall{ID: "a", Name: "shell", Arguments: `{"command":"curl -H 'Authorization: Bearer ` + secretKey + `' https://api.example.com/v1"}`}),
		toolResult(13, "a", "Error: API_KEY="+secretKey+" refused\nexit code 1"), parts,
	)
	req.Previous = "## Facts\nThe key is " + secretKey + "."
	req.Focus = "the use of " + secretKey
	req.Limit, req.Replaces = 1_200, 6_000
	return req
}

// Secrets reach neither the summarizer nor the summary, whatever the
// strategy and whoever wrote them; the messages stay as they are (W10).
func TestRow23SecretsAreRedacted(t *testing.T) {
	t.Parallel()
	blabbing := good + "\n\n## Facts\nThe password is " + secretPassword + "1; the key " + secretKey + "."
	strategies := map[string]func(*summarize.LLM) summarize.Strategy{"llm": plain, "hybrid": hybrid,
		"extractive": func(*summarize.LLM) summarize.Strategy { return summarize.NewExtractive(counter{}) }}
	for name, strategy := range strategies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llmtest.Scripted(llmtest.Step{Text: []string{blabbing}, Repeat: true})
			req := leaky()
			res := must.Get(summarize.New(strategy(summarize.NewLLM(model, counter{}, nil)), counter{}).Summarize(t.Context(), req))(t)
			texts := []string{res.Content}
			for _, r := range model.Requests() {
				texts = append(texts, lastUser(t, r))
			}
			for _, text := range texts {
				for _, secret := range []string{secretKey, secretPassword} {
					compare.True(t, !strings.Contains(text, secret), "got %q in:\n%s", secret, text)
				}
				compare.Contains(t, "material", "[redacted: api key]", text)
			}
			if name != "llm" && !strings.Contains(res.Content, "https://api.example.com/v1") {
				t.Errorf("got %s, want what is no secret in the ledger", res.Content)
			}
			compare.Equal(t, "the request was changed", leaky(), req)
		})
	}
}
