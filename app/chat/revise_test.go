package chat_test

import (
	"strings"
	"testing"

	"bobbin/app/core"
)

// An edit in place has the rules of sending; coretest.TestRevisions has what storage refuses.
func TestRevise(t *testing.T) {
	simulate(t, func(t *testing.T) {
		h := newHouse(t, 0, answer)
		m, err := h.Revise(t.Context(), ann, h.session.ID, "m", "hello\x00 there")
		if err != nil || m.Content != "hello\uFFFD there" || m.TokenCount != len(m.Content) {
			t.Errorf("got %+v and %v, want the text as it is sent", m, err)
		}
		_, err = h.Revise(t.Context(), ann, h.session.ID, "m", strings.Repeat("x", 1<<20+1))
		wantKind(t, err, core.ErrTooLarge)
		_, err = h.Revise(t.Context(), ann, h.session.ID, "m", " \n")
		wantKind(t, err, core.ErrInvalid)
	})
}
