package chat_test

import (
	"errors"
	"sync"
	"testing"

	"bobbin/app/chat"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/repositories"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// The alias of an archived session moves to one fork of it, however many open it concurrently.
func TestOpenArchivedSession(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		sessions, messages := repositories.NewSessions(d.Gorm), repositories.NewMessages(d.Gorm)
		h := chat.New(chat.Options{
			Sessions: sessions, Messages: messages, Branches: repositories.NewBranches(d.Gorm), Aliases: repositories.NewAliases(d.Gorm),
			Agents: catalog{}, FindModel: registry{}.Get, Counter: counter{}, DefaultAgent: "assistant",
		})
		tenant, thread := core.Tenant{Owner: "ann"}, core.Alias{Surface: core.SourceSlack, Name: "T1/C1/1.2"}
		first := must.Get(h.OpenSession(t.Context(), tenant, thread, core.Session{Title: "The pump", UserID: "slack:T1/U1"}))(t)
		must.Get(messages.Append(t.Context(), tenant, core.AppendMessages{SessionID: first.ID, Messages: []core.Message{{Role: core.RoleUser, Content: "The pump is red."}}}))(t)
		if _, _, err := sessions.Update(t.Context(), tenant, first.ID, core.SessionPatch{Archived: new(true)}); err != nil {
			t.Fatal(err)
		}
		var wait sync.WaitGroup
		forks := make([]core.Session, 6)
		for i := range forks {
			wait.Go(func() {
				s, err := h.OpenSession(t.Context(), tenant, thread, core.Session{})
				if err != nil {
					t.Error(err)
				}
				forks[i] = s
			})
		}
		wait.Wait()
		for _, s := range forks {
			if s.ID != forks[0].ID || s.ID == first.ID || s.ArchivedAt != nil || s.MessageCount != 1 || s.Title != "The pump" {
				t.Fatalf("got the session %+v, want one fork of %s", s, first.ID)
			}
		}
		if _, err := h.OpenSession(t.Context(), core.Tenant{Owner: "ann", User: "bob"}, thread, core.Session{}); !errors.Is(err, core.ErrNotFound) {
			t.Errorf("another user: got error %v, want ErrNotFound", err)
		}
	})
}
