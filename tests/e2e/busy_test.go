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
