package repositories_test

import (
	"fmt"
	"testing"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// begun takes a key for a request that has not been answered yet.
func (s *store) begun(t *testing.T, target string) (*repositories.IdempotencyKeys, core.KeyedRequest) {
	t.Helper()
	keys, in := repositories.NewIdempotencyKeys(s.Gorm), keyed("ann", core.NewID[string]())
	in.Target = target
	if known, err := keys.Begin(t.Context(), in); err != nil || known != nil {
		t.Fatalf("begin: %+v, %v", known, err)
	}
	return keys, in
}

// An answer is not stored if something in it was removed before: a removal finds the
// answers stored before it, and none follow.
func TestAnswersThatComeTooLateAreNotKept(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s := open(d)
		purges, branches := repositories.NewPurges(d.Gorm), repositories.NewBranches(d.Gorm)
		created, kept := s.session(t).ID, s.session(t).ID
		s.turns(t, kept, 1)
		log := s.log(t, kept)
		memory := must.Get(repositories.NewMemories(d.Gorm).Create(t.Context(), core.Memory{Owner: "ann", UserID: "eve", Content: secret}))(t)
		path := "/api/v1/sessions/" + string(kept)
		for name, tt := range map[string]struct {
			target, location, body string
			remove                 func() error
			kept                   bool
		}{
			"a session that was purged": {"POST /api/v1/sessions", "/api/v1/sessions/" + string(created), `{"id":"` + string(created) + `"}`, func() error {
				_, err := purges.Session(t.Context(), created, true)
				return err
			}, false},
			"a message that was deleted": {"POST " + path + "/messages", "", `{"message":{"id":"` + string(log[1].ID) + `","content":"` + secret + `"}}`, func() error {
				_, err := branches.Delete(t.Context(), ann(), kept, log[1].ID)
				return err
			}, false},
			"a memory of a user who was purged": {"POST /api/v1/memories", "/api/v1/memories/" + string(memory.ID), `{"user_id":"eve"}`, func() error {
				_, err := purges.User(t.Context(), "ann", "eve")
				return err
			}, false},
			"a message that is there": {"POST " + path + "/messages", "", `{"message":{"id":"` + string(log[0].ID) + `","session_id":"` + string(kept) + `","parent_id":"` + string(log[1].ID) + `"}}`, func() error { return nil }, true},
		} {
			keys, in := s.begun(t, tt.target)
			must.Do(t, tt.remove())
			a := core.KeyedAnswer{RequestHash: "h", Status: 201, Location: tt.location, Body: []byte(tt.body), Kept: true}
			must.Do(t, keys.Finish(t.Context(), in, a))
			in.Token = core.NewID[string]()
			known, err := keys.Begin(t.Context(), in)
			if err != nil || known == nil || known.Kept != tt.kept || known.Status != 201 {
				t.Errorf("%s: got %+v, %v, want it known, and kept: %v", name, known, err, tt.kept)
			}
		}
	})
}

// Answers are found by what they mention, in the path of the request, in Location and in
// the body; those of others stay, and so do keys that are not answered yet.
func TestAnswersAreFoundByWhatTheyMention(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		s, purges := open(d), repositories.NewPurges(d.Gorm)
		own, other := s.session(t).ID, s.session(t).ID
		s.keep(t, "body", "POST /api/v1/sessions", `{"id":"`+string(own)+`"}`)
		s.keep(t, "path", "PATCH /api/v1/sessions/"+string(own), `{}`)
		s.keep(t, "user", "POST /api/v1/blobs", `{"user_id":"a\"b <c>"}`)
		s.keep(t, "other", "PATCH /api/v1/sessions/"+string(other), `{"id":"`+string(other)+`","user_id":"a"}`)
		s.keep(t, "nothing", "POST /x", `{"text":"no ids"}`)
		s.begun(t, "PATCH /api/v1/sessions/"+string(own))
		many := map[string]bool{string(own): true}
		for i := range 2500 {
			many[fmt.Sprintf("00000000-0000-7000-8000-%012d", i)] = true
		}
		for _, tt := range []struct {
			marks core.PurgeMarks
			want  int64
		}{
			{core.PurgeMarks{Owner: "bob", IDs: many}, 0},
			{core.PurgeMarks{Owner: "ann", IDs: many}, 2},
			{core.PurgeMarks{Owner: "ann", User: `a"b <c>`}, 1},
			{core.PurgeMarks{IDs: many}, 2},
		} {
			if n, err := purges.Answers(t.Context(), tt.marks, true); err != nil || n != tt.want {
				t.Errorf("of %q, user %q: got %d, %v, want %d", tt.marks.Owner, tt.marks.User, n, err, tt.want)
			}
		}
		if n, err := purges.Answers(t.Context(), core.PurgeMarks{IDs: many}, false); err != nil || n != 2 {
			t.Errorf("removed %d, %v, want 2", n, err)
		}
		if keys, mentions := s.count(t, "SELECT COUNT(*) FROM idempotency_keys"), s.count(t, "SELECT COUNT(*) FROM idempotency_mentions"); keys != 4 || mentions != 3 {
			t.Errorf("got %d keys and %d mentions left, want 4 and 3", keys, mentions)
		}
	})
}
