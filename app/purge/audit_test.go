package purge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bobbin/app/core"
	"bobbin/tests/must"
)

// A removal is in the audit log, with its actor and its size, but without the names of what is
// gone; a dry run, and a purge that removed nothing, are not.
func TestAudit(t *testing.T) {
	t.Parallel()
	f := &fake{}
	s := service(f)
	must.Get(s.Sessions(t.Context(), core.PurgeSessions{Owner: "web", IDs: []core.SessionID{"a"}}))(t)
	must.Get(s.User(t.Context(), core.PurgeUser{Owner: "web", User: "alice"}))(t)
	must.Get(s.User(t.Context(), core.PurgeUser{Owner: "web", User: "alice", PurgeOptions: core.PurgeOptions{DryRun: true}}))(t)
	var told []string
	for _, e := range f.noted {
		told = append(told, strings.Join([]string{e.Actor, e.Action, e.Owner, e.Target}, " "))
		if text := fmt.Sprintf("%+v %s", e, e.Details); strings.Contains(text, "alice") || !strings.Contains(text, `"complete":true`) || !strings.Contains(text, `"removed":{`) {
			t.Errorf("got entry %s, want the numbers, and no user", text)
		}
	}
	want := []string{"cli sessions.purged web sessions: 1", "cli user.purged web user sha256:" + core.SecretHash("alice")[:12]}
	if got := strings.Join(told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("audit log: got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	f = &fake{fails: errors.New("no database")}
	if _, err := service(f).Sessions(t.Context(), core.PurgeSessions{IDs: []core.SessionID{"a"}}); err == nil || len(f.noted) != 0 {
		t.Errorf("got %v and %d entries for a purge that did nothing, want an error and none", err, len(f.noted))
	}
}
