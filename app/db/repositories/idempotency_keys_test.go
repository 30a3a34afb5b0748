package repositories_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"bobbin/app/core"
	"bobbin/app/db/repositories"
	"bobbin/tests/compare"
	"bobbin/tests/must"
)

func keyed(owner, key string) core.KeyedRequest {
	return core.KeyedRequest{
		Owner: owner, Key: key, Target: "POST /api/v1/sessions", Token: core.NewID[string](), Keep: time.Hour, Work: time.Minute,
	}
}

// begin begins a keyed request, and returns what is known of it.
func (s *store) begin(t *testing.T, in core.KeyedRequest) *core.KeyedAnswer {
	t.Helper()
	return must.Get(repositories.NewIdempotencyKeys(s.Gorm).Begin(t.Context(), in))(t)
}

// take takes the key, which is free, for a request.
func (s *store) take(t *testing.T, in core.KeyedRequest) {
	t.Helper()
	if known := s.begin(t, in); known != nil {
		t.Fatalf("got %+v, want the key %s", known, in.Key)
	}
}

// A request with the same key is executed once, and answered the same way while the key is
// stored.
func TestIdempotencyKey(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := repositories.NewIdempotencyKeys(s.Gorm)
		first := keyed("ann", "k")
		s.take(t, first)
		if known := s.begin(t, keyed("ann", "k")); known == nil || known.Status != 0 {
			t.Fatalf("got %+v while the first is at work, want that said", known)
		}
		s.take(t, keyed("bob", "k")) // of another owner
		answer := core.KeyedAnswer{RequestHash: "h", Status: 201, ContentType: "application/json", Location: "/x", Body: []byte("{}\x00"), Kept: true}
		must.Do(t, keys.Finish(t.Context(), first, answer))
		answer.Target = first.Target
		compare.Equal(t, "kept answer", &answer, s.begin(t, keyed("ann", "k")))
		// What the first one does later changes nothing.
		must.Do(t, keys.Release(t.Context(), first))
		known := s.begin(t, keyed("ann", "k"))
		compare.True(t, known != nil, "got a free key after a late release, want it kept")
		s.exec(t, "UPDATE idempotency_keys SET expires_at = '2000-01-01 00:00:00+00:00' WHERE owner = 'ann'")
		s.take(t, keyed("ann", "k"))
	})
}

// The key of a message is no other request's in its session, unless that came first.
func TestIdempotencyKeyOfAMessage(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys, id := repositories.NewIdempotencyKeys(s.Gorm), s.session(t).ID
		request := func(key, target string) core.KeyedRequest {
			in := keyed("ann", key)
			in.Sent, in.Target = key, target
			return in
		}
		own := "PATCH /api/v1/sessions/" + string(id)
		s.take(t, request("first", own))
		for _, key := range []string{"first", "run"} {
			asked := ask(id, "x")
			asked.ClientMessageID = key
			s.accept(t, asked)
		}
		s.append(t, s.session(t).ID, false, core.Message{Role: core.RoleUser, Content: "x", ClientMessageID: "log", Source: core.SourceAPI})
		for _, path := range []string{own, "POST /v1/conversations/conv_" + string(id) + "/items"} {
			for range 2 {
				wantError(t, path, compare.ErrorOf(keys.Begin(t.Context(), request("run", path))), core.ErrInvalid)
			}
		}
		s.take(t, request("run", "POST /api/v1/sessions"))
		s.take(t, request("log", own))
		compare.True(t, s.begin(t, request("first", own)) != nil, "a key that the request had before the message is free")
	})
}

func TestIdempotencyKeyRelease(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := repositories.NewIdempotencyKeys(s.Gorm)
		dead, next := keyed("ann", "k"), keyed("ann", "k")
		for _, in := range []core.KeyedRequest{dead, next} {
			s.take(t, in)
			if in == dead { // its process was killed long ago
				s.exec(t, "UPDATE idempotency_keys SET created_at = '2000-01-01 00:00:00+00:00'")
			}
		}
		must.Do(t, keys.Finish(t.Context(), dead, core.KeyedAnswer{Status: 200, Kept: true}))
		must.Do(t, keys.Finish(t.Context(), next, core.KeyedAnswer{Status: 204, RequestHash: "h"}))
		known, err := keys.Begin(t.Context(), keyed("ann", "k"))
		compare.True(t, err == nil && known != nil && known.Status == 204 && !known.Kept, "got %+v, %v, want the answer of the one that took over, without a body", known, err)
		other := keyed("ann", "other")
		for range 2 { // free again after each release
			s.take(t, other)
			must.Do(t, keys.Release(t.Context(), other))
		}
		wantError(t, "a key that cannot be stored", compare.ErrorOf(keys.Begin(t.Context(), keyed("ann", "\x00"))), core.ErrInvalid)
	})
}

// Of many concurrent requests one gets the key, even when it must be taken over.
func TestIdempotencyKeyConcurrently(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := repositories.NewIdempotencyKeys(s.Gorm)
		for round := range 2 {
			var got atomic.Int32
			race(racers, func(int) {
				known, err := keys.Begin(t.Context(), keyed("ann", "k"))
				compare.Error(t, "begin", nil, err)
				if known == nil {
					got.Add(1)
				}
			})
			compare.Equal(t, fmt.Sprintf("round %d: got the key", round), 1, got.Load())
			s.exec(t, "UPDATE idempotency_keys SET created_at = '2000-01-01 00:00:00+00:00'")
		}
	})
}

func TestIdempotencyKeySweep(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := repositories.NewIdempotencyKeys(s.Gorm)
		for i := range 5 {
			s.take(t, keyed("ann", fmt.Sprint("k", i)))
		}
		s.exec(t, "UPDATE idempotency_keys SET expires_at = '2000-01-01 00:00:00+00:00' WHERE key <> 'k0'")
		for _, want := range []int{3, 1, 0} {
			compare.Equal(t, "n", want, must.Get(keys.Sweep(t.Context(), 3))(t))
		}
		compare.Equal(t, "keys left: want the one that is valid", 1, s.count(t, "SELECT COUNT(*) FROM idempotency_keys"))
	})
}

// keyedContext is the context of an execution of the request, whose body has the hash.
func keyedContext(t *testing.T, in core.KeyedRequest, hash string, result *core.KeyedResult) context.Context {
	t.Helper()
	return core.WithKeyedWork(t.Context(), core.KeyedWork{Request: in, BodyHash: func() (string, error) { return hash, nil }, Result: result})
}

// A committed request counts as executed even if its process dies: the key is not released,
// and the next request with it finds the result.
func TestIdempotencyKeyKeepsWhatIsCommitted(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		keys := repositories.NewIdempotencyKeys(s.Gorm)
		dead, next := keyed("ann", "k"), keyed("ann", "k")
		s.begin(t, dead)
		made := must.Get(s.sessions.Create(keyedContext(t, dead, "h", nil), core.Session{Owner: "ann", Title: "once"}))(t)
		must.Do(t, keys.Release(t.Context(), dead))
		s.begin(t, next)
		must.Do(t, keys.Finish(t.Context(), next, core.KeyedAnswer{Status: 201})) // an answer that is too long
		next = keyed("ann", "k")
		known := s.begin(t, next)
		if known == nil || known.Status != 0 || known.Result == nil || known.Result.Name != string(made.ID) {
			t.Fatalf("got %+v after a release, want the session %s", known, made.ID)
		}
		again, err := s.sessions.Create(keyedContext(t, next, "h", known.Result), core.Session{Owner: "ann", Title: "once"})
		compare.True(t, err == nil && again.ID == made.ID, "got session %s, %v, want %s", again.ID, err, made.ID)
		wantError(t, "another body", compare.ErrorOf(s.sessions.Create(keyedContext(t, next, "other", known.Result), core.Session{Owner: "ann"})), core.ErrInvalid)
		compare.Equal(t, "sessions", 1, s.count(t, "SELECT COUNT(*) FROM sessions"))
		must.Do(t, keys.Finish(t.Context(), next, core.KeyedAnswer{Status: 201, Body: []byte("{}"), Kept: true}))
		for _, kept := range []bool{true, false} {
			known := s.begin(t, keyed("ann", "k"))
			compare.True(t, known != nil && known.Kept == kept && (known.Result == nil) == kept, "got %+v, want the answer until something in it is deleted, then what was committed", known)
			s.exec(t, "UPDATE idempotency_keys SET body = NULL")
		}
		other := keyed("ann", "k")
		other.Target = "POST /api/v1/memories"
		if known := s.begin(t, other); known == nil || known.Target != dead.Target {
			t.Errorf("got %+v for another target, want the first request", known)
		}
	})
}

// A request whose key was taken over commits nothing.
func TestIdempotencyKeyFencesItsRequest(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		slow, next := keyed("ann", "k"), keyed("ann", "k")
		for _, in := range []core.KeyedRequest{slow, next} {
			s.take(t, in)
			s.exec(t, "UPDATE idempotency_keys SET created_at = '2000-01-01 00:00:00+00:00'")
		}
		wantError(t, "the slow request", compare.ErrorOf(s.sessions.Create(keyedContext(t, slow, "h", nil), core.Session{Owner: "ann"})), core.ErrConflict)
		compare.Error(t, "the request that took over", nil, compare.ErrorOf(s.sessions.Create(keyedContext(t, next, "h", nil), core.Session{Owner: "ann"})))
		compare.Equal(t, "sessions", 1, s.count(t, "SELECT COUNT(*) FROM sessions"))
	})
}

// begun takes a key for a request that has not been answered yet.
func (s *store) begun(t *testing.T, target string) (*repositories.IdempotencyKeys, core.KeyedRequest) {
	t.Helper()
	keys, in := repositories.NewIdempotencyKeys(s.Gorm), keyed("ann", core.NewID[string]())
	in.Target = target
	s.take(t, in)
	return keys, in
}

// An answer is not stored if something in it was removed before: a removal finds the
// answers stored before it, and none follow.
func TestAnswersThatComeTooLateAreNotKept(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges, branches := repositories.NewPurges(s.Gorm), repositories.NewBranches(s.Gorm)
		created, kept := s.session(t).ID, s.session(t).ID
		s.turns(t, kept, 1)
		log := s.log(t, kept)
		memory := must.Get(repositories.NewMemories(s.Gorm).Create(t.Context(), core.Memory{Owner: "ann", UserID: "eve", Content: secret}))(t)
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
				err := purges.User(t.Context(), "ann", "eve")
				return err
			}, false},
			"a message that is there": {"POST " + path + "/messages", "", `{"message":{"id":"` + string(log[0].ID) + `","session_id":"` + string(kept) + `","parent_id":"` + string(log[1].ID) + `"}}`, func() error { return nil }, true},
		} {
			keys, in := s.begun(t, tt.target)
			must.Do(t, tt.remove())
			a := core.KeyedAnswer{RequestHash: "h", Status: 201, Location: tt.location, Body: []byte(tt.body), Kept: true}
			must.Do(t, keys.Finish(t.Context(), in, a))
			in.Token = core.NewID[string]()
			known := s.begin(t, in)
			compare.True(t, known != nil && known.Kept == tt.kept && known.Status == 201, "%s: got %+v, want it known, and kept: %v", name, known, tt.kept)
		}
	})
}

// Whoever deletes a memory or a file clears what is stored of the answers about it.
func TestAnswersGoWithWhatTheyAreAbout(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		memories, kept := repositories.NewMemories(s.Gorm), "SELECT COUNT(*) FROM idempotency_keys WHERE body IS NOT NULL"
		memory, file := must.Get(memories.Create(t.Context(), core.Memory{Owner: "ann", Content: secret}))(t), s.upload(t, "", "x.txt", "x")
		s.keep(t, "memory", "POST /api/v1/memories", `{"id":"`+string(memory.ID)+`","content":"`+secret+`"}`)
		s.keep(t, "file", "POST /api/v1/blobs", `{"id":"`+string(file.ID)+`"}`)
		must.Do(t, memories.Delete(t.Context(), ann(), memory.ID))
		compare.Equal(t, "kept without the memory", 1, s.count(t, kept))
		must.Do(t, s.blobs.Delete(t.Context(), ann(), file.ID))
		compare.Equal(t, "kept without the file", 0, s.count(t, kept))
	})
}

// Answers are found by what they mention, in the path of the request, in Location and in
// the body; those of others stay, and so do keys that are not answered yet.
func TestAnswersAreFoundByWhatTheyMention(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		purges := repositories.NewPurges(s.Gorm)
		own, other := s.session(t).ID, s.session(t).ID
		s.keep(t, "body", "POST /api/v1/sessions", `{"id":"`+string(own)+`"}`)
		s.keep(t, "path", "PATCH /api/v1/sessions/"+string(own), `{}`)
		s.keep(t, "user", "POST /api/v1/blobs", `{"user_id":"a\"b <c>"}`)
		s.keep(t, "other", "PATCH /api/v1/sessions/"+string(other), `{"id":"`+string(other)+`","user_id":"a"}`)
		s.keep(t, "nothing", "POST /x", `{"text":"no ids"}`)
		s.begun(t, "PATCH /api/v1/sessions/"+string(own))
		many := []core.SessionID{own}
		for i := range 2500 {
			many = append(many, core.SessionID(fmt.Sprintf("00000000-0000-7000-8000-%012d", i)))
		}
		for _, tt := range []struct {
			owner, user string
			sessions    []core.SessionID
			want        int64
		}{
			{"bob", "", many, 0},
			{"ann", "", many, 2},
			{"ann", `a"b <c>`, nil, 1},
			{"", "", many, 2},
		} {
			compare.Equal(t, fmt.Sprintf("of %q, user %q: n", tt.owner, tt.user), tt.want, must.Get(purges.Answers(t.Context(), tt.owner, tt.user, tt.sessions, true))(t))
		}
		compare.Equal(t, "removed", 2, must.Get(purges.Answers(t.Context(), "", "", many, false))(t))
		if keys, mentions := s.count(t, "SELECT COUNT(*) FROM idempotency_keys"), s.count(t, "SELECT COUNT(*) FROM idempotency_mentions"); keys != 4 || mentions != 3 {
			t.Errorf("got %d keys and %d mentions left, want 4 and 3", keys, mentions)
		}
	})
}
