package e2e_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/tests/apptest"
	"bobbin/tests/dbtest"
)

// busyUntil makes the session one that another replica imports into, up to the time.
func busyUntil(t *testing.T, d *db.DB, id core.SessionID, until time.Time) {
	t.Helper()
	err := d.Gorm.WithContext(t.Context()).Exec("UPDATE sessions SET busy = 'import', busy_owner = 'another/replica/x', busy_until = ? WHERE id = ?", until.UTC(), id).Error
	if err != nil {
		t.Fatal(err)
	}
}

// isBusy reports whether the session is busy.
func isBusy(t *testing.T, d *db.DB, id core.SessionID) bool {
	t.Helper()
	var count int
	if err := d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM sessions WHERE busy <> '' AND id = ?", id).Scan(&count).Error; err != nil {
		t.Fatal(err)
	}
	return count > 0
}

// While a history is imported into a session, whoever writes to it is told immediately
// when to come back, and readers see it as it was. When the importing replica has died
// the others clean up, and the session goes on.
func TestSessionThatIsImportedInto(t *testing.T) {
	t.Parallel()
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, core.Session{})
		apptest.SendMessage(t, h.Client, core.SendMessage{SessionID: id, Content: "Remember the harpsichord."})
		d := dbtest.Open(t, url)
		busyUntil(t, d, id, time.Now().Add(time.Hour))

		_, sending := h.SendAsync(t.Context(), core.SendMessage{SessionID: id, Content: "Are you there?"})
		_, importing := h.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(history(4)), Format: core.ImportLines})
		_, forking := h.ForkSession(t.Context(), id, "")
		for what, err := range map[string]error{"a message": sending, "an import": importing, "a fork": forking} {
			var p *client.ProblemError
			if !errors.As(err, &p) || p.Status != http.StatusConflict || p.Code != core.CodeSessionBusy || p.RetryAfter <= 0 {
				t.Errorf("%s: got %+v, want 409 %s with Retry-After", what, err, core.CodeSessionBusy)
			}
		}
		if got := len(apptest.ListMessages(t, h.Client, id)); got != 2 {
			t.Errorf("readers see %d messages, want 2", got)
		}

		busyUntil(t, d, id, time.Now().Add(-time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for {
			_, err := h.SendAndWait(ctx, core.SendMessage{SessionID: id, Content: "Are you there?"})
			if err == nil {
				break
			}
			var p *client.ProblemError
			if !errors.As(err, &p) || p.Code != core.CodeSessionBusy {
				t.Fatalf("after the importing replica has died: %v", err)
			}
			apptest.PauseBriefly(t)
		}
		if got := len(apptest.ListMessages(t, h.Client, id)); got != 4 {
			t.Errorf("got %d messages, want both turns", got)
		}
	})
}

// A client that goes away in the middle of an import leaves all of it or nothing, and a
// session that goes on.
func TestImportWhoseClientGoesAway(t *testing.T) {
	t.Parallel()
	const n = 3000
	lines := history(n)
	dbtest.EachMigratedURLNightly(t, func(t *testing.T, url string) {
		h := apptest.New(t, url)
		id := apptest.NewSession(t, h.Client, core.Session{})
		d := dbtest.Open(t, url)
		busy := func() bool { return isBusy(t, d, id) }
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := h.ImportMessages(ctx, core.ImportMessages{SessionID: id, Body: strings.NewReader(lines), Format: core.ImportLines})
			ended <- err
		}()
		var err error
		for began := false; !began; {
			select {
			case err = <-ended:
				ended <- err
				began = true
			default:
				began = busy()
				apptest.PauseBriefly(t)
			}
		}
		cancel()
		err = <-ended
		for busy() {
			apptest.PauseBriefly(t)
		}
		done := err == nil
		var stored int
		if err := d.Gorm.WithContext(t.Context()).Raw("SELECT COUNT(*) FROM messages WHERE session_id = ?", id).Scan(&stored).Error; err != nil {
			t.Fatal(err)
		}
		session, err := h.Session(t.Context(), id)
		whole, none := session.MessageCount == n, session.MessageCount == 0 && !done
		if err != nil || !whole && !none || stored != session.MessageCount {
			t.Errorf("got %d messages of which %d are stored, %v, want all or nothing", session.MessageCount, stored, err)
		}
		if answer, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "Are you there?"}); err != nil || answer.Run.Status != core.RunSucceeded {
			t.Errorf("a message after it: %+v, %v", answer.Run, err)
		}
	})
}

// An import that fails in the middle, because the session was archived meanwhile, leaves a session
// that takes a message immediately.
func TestMessageAfterAFailedImport(t *testing.T) {
	t.Parallel()
	url := dbtest.MigratedSQLiteURL(t)
	h, d := apptest.New(t, url), dbtest.Open(t, url)
	id := apptest.NewSession(t, h.Client, core.Session{})
	archive := func(yes bool) error {
		_, err := h.UpdateSession(t.Context(), id, core.SessionPatch{Archived: &yes})
		return err
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.ImportMessages(t.Context(), core.ImportMessages{SessionID: id, Body: strings.NewReader(history(5000)), Format: core.ImportLines})
		ended <- err
	}()
	for !isBusy(t, d, id) && len(ended) == 0 {
		apptest.PauseBriefly(t)
	}
	if err := archive(true); err != nil {
		t.Fatal(err)
	}
	var p *client.ProblemError
	if err := <-ended; !errors.As(err, &p) || p.Status != http.StatusConflict {
		t.Fatalf("import: got %v, want 409 as the session is archived", err)
	}
	if err := archive(false); err != nil {
		t.Fatal(err)
	}
	answer, err := h.SendAndWait(t.Context(), core.SendMessage{SessionID: id, Content: "Are you there?"})
	if err != nil || answer.Run.Status != core.RunSucceeded {
		t.Errorf("a message after it: %+v, %v", answer.Run, err)
	}
	if got := len(apptest.ListMessages(t, h.Client, id)); got != 2 {
		t.Errorf("got %d messages, want the turn", got)
	}
}
