package bench_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"bobbin/tests/must"
	"bobbin/tests/process"
)

// patience is how long a program may take to start.
const patience = time.Minute

// serve starts a Bobbin, ends it after the test, and returns where it answers and its process.
func serve(t *testing.T, den *process.Den, settings, database string) (url string, pid int) {
	t.Helper()
	s := den.NewServer(t, den.Program(t, false), den.Temp(t), settings, "BOBBIN_DATABASE_URL="+database)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Start(ctx); err != nil {
		log, _ := s.ReadLog()
		t.Fatalf("%v:\n%s", err, log)
	}
	for url = "http://" + s.Door.Addr(); !answers(t, url); {
		if !process.Pause(ctx, 20*time.Millisecond) {
			t.Fatalf("not ready after %s", patience)
		}
	}
	return url, s.PID()
}

// answers reports whether the server takes requests.
func answers(t *testing.T, url string) bool {
	t.Helper()
	req := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/version", nil))(t)
	res, err := http.DefaultClient.Do(req)
	return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
}
