package api_test

import (
	"encoding/json"
	"testing"

	"bobbin/app/api"
	"bobbin/tests/apitest"
)

// A page that cannot be written whole is an error.
func TestBrokenPages(t *testing.T) {
	t.Parallel()
	backend := apitest.New()
	broken := backend.Messages[1]
	broken.Metadata = json.RawMessage("{")
	backend.Messages = append(backend.Messages, broken)
	opts, _ := options(backend)
	wantProblem(t, do(api.New(opts), request("GET", sessionPath+"/messages", "")), 500, "internal")
}
