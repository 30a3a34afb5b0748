package adapters_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"

	"bobbin/app/core"
	"bobbin/app/core/llm"
	"bobbin/tests/provider"
)

// strictDialects returns the dialects with signed thoughts: what a scene has in place of a signature
// is signed, and what comes back is checked.
func strictDialects() []dialect {
	strict := provider.Strict{Account: "account", Secret: "secret"}
	checks := map[string]func([]byte, http.Header) (*provider.Signer, error){
		"anthropic": strict.SignMessages,
		"responses": func(body []byte, _ http.Header) (*provider.Signer, error) { return strict.SignResponses(body) },
	}
	var out []dialect
	for _, d := range dialects() {
		if d.check = checks[d.name]; d.check != nil {
			out = append(out, d)
		}
	}
	return out
}

// check checks the thoughts of a request, and refuses it if they are not valid.
func (s *server) check(at *stage) bool {
	signer, err := s.dialect.check(at.body, at.r.Header)
	if err != nil {
		at.refuse(http.StatusBadRequest, "invalid_request_error", err.Error())
		return false
	}
	at.signer = signer
	s.mu.Lock()
	defer s.mu.Unlock()
	s.thoughts.Verified += signer.Thoughts.Verified
	s.thoughts.Dropped += signer.Thoughts.Dropped
	return true
}

// sign returns the piece with a signature in place of the scene's.
func (s *stage) sign(p piece) piece {
	s.thought, s.text = s.thought+p.thinking, s.text+p.text
	for _, literal := range []*string{&p.signature, &p.redacted} {
		if *literal == "" {
			continue
		}
		if s.text != "" {
			s.signer.AddText(s.text)
		}
		signature := s.signer.Sign(s.thought)
		s.server.mu.Lock()
		s.server.signed[*literal] = signature
		s.server.mu.Unlock()
		*literal, s.text, s.thought = signature, "", ""
	}
	return p
}

// countThoughts returns how many different thoughts were signed, and what became of those that came
// back.
func (s *server) countThoughts() (signed int, back provider.Thoughts) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.signed), s.thoughts
}

// All scenarios end with a strict provider as they do with others.
func TestStrictScenarios(t *testing.T) {
	t.Parallel()
	for _, sc := range scenarios() {
		for _, d := range strictDialects() {
			t.Run(sc.name+"/"+d.label(), func(t *testing.T) {
				t.Parallel()
				if diff := sc.play(t, d); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// The thoughts of every scenario are valid when they go back.
func TestStrictThoughtsGoBack(t *testing.T) {
	t.Parallel()
	for _, sc := range thoughts() {
		for _, d := range strictDialects() {
			t.Run(sc.name+"/"+d.label(), func(t *testing.T) {
				t.Parallel()
				sc.drive, sc.want = sendBack, outcome{}
				if diff := sc.play(t, d); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// sendBack sends the answer back twice, and says what became of its thoughts unless all are valid.
func sendBack(ctx context.Context, _ *testing.T, c *caller) (o outcome) {
	res, err := llm.Collect(c.model.Stream(ctx, c.req), nil)
	if err != nil {
		return seen(res, err)
	}
	signed, _ := c.server.countThoughts()
	c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleAssistant, Content: res.Text, Parts: res.Parts, ToolCalls: res.ToolCalls})
	for _, call := range res.ToolCalls {
		c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleTool, ToolCallID: call.ID, ToolName: call.Name, Content: "result"})
	}
	for range 2 {
		c.req.Messages = append(c.req.Messages, llm.Message{Role: core.RoleUser, Content: "go on"})
		if res, err := llm.Collect(c.model.Stream(ctx, c.req), nil); err != nil || res.Dropped != nil {
			return outcome{Note: fmt.Sprintf("got %+v, %v", res.Dropped, err)}
		}
	}
	if _, got := c.server.countThoughts(); got != (provider.Thoughts{Verified: 2 * signed}) {
		o.Note = fmt.Sprintf("got %+v of %d thoughts sent back twice", got, signed)
	}
	return o
}
