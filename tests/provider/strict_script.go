package provider

import (
	"encoding/json"
	"errors"
	"net/http"
)

// Signer signs the thoughts of a scripted answer to a request whose history was checked.
type Signer struct {
	Thoughts Thoughts // that the request sent back

	sign    func(thought string) string
	addText func(text string)
}

// Sign returns the signature, or the encrypted content, of the answer's next thought. The text of a
// redacted one is empty.
func (s *Signer) Sign(thought string) string { return s.sign(thought) }

// AddText adds a text of the answer, to which the thoughts after it are bound, too.
func (s *Signer) AddText(text string) { s.addText(text) }

// SignMessages checks a request of Anthropic's Messages API; the error is the refusal.
func (s Strict) SignMessages(body []byte, header http.Header) (*Signer, error) {
	c, refused := (&verifier{Strict: s}).checkMessages(body, betasOf(header))
	if refused != nil {
		return nil, errors.New(refused.message)
	}
	produced := c.prefix.last().add("role assistant")
	return &Signer{
		Thoughts: c.thoughts(),
		sign: func(thought string) string {
			v := c.newThought(digest(produced[0], c.before), c.before, thought)
			v.Prefix, c.before = produced, v.ID
			return s.sign(v)
		},
		addText: func(text string) {
			produced = produced.add(s.canonical(json.RawMessage(`{"text":` + quoted(text) + `,"type":"text"}`)))
		},
	}, nil
}

// SignResponses checks a request of OpenAI's Responses API; the error is the refusal.
func (s Strict) SignResponses(body []byte) (*Signer, error) {
	r, err := s.CheckResponses(body)
	if err != nil {
		return nil, err
	}
	return &Signer{
		Thoughts: Thoughts{Verified: r.Verified, Dropped: len(r.Removed)},
		sign:     func(string) string { return r.NewReasoning()["encrypted_content"].(string) }, //nolint:forcetypeassert // NewReasoning writes it
		addText: func(text string) {
			item := message("", "", text)
			delete(item, "phase")
			r.addOutput(item)
		},
	}, nil
}
