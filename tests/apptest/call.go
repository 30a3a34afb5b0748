package apptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"bobbin/app/client"
	"bobbin/app/core"
	"bobbin/tests/process"
)

// Fields are the fields of a body.
type Fields = map[string]any

type caller interface {
	Do(ctx context.Context, call client.RawCall) (*http.Response, error)
}

// Call calls an operation for which the client has no method, such as
// "GET /memories/%s?user_id=%s" below /api/v1; a nil body is none.
func Call[T any](ctx context.Context, c caller, operation string, body any, in ...any) (answer T, err error) {
	method, target, _ := strings.Cut(fmt.Sprintf(operation, in...), " ")
	at, err := url.Parse(target)
	if err != nil {
		return answer, err
	}
	call := client.RawCall{Method: method, Path: "/api/v1" + at.EscapedPath(), Query: at.Query()}
	maps.DeleteFunc(call.Query, func(_ string, values []string) bool { return values[0] == "" })
	if body != nil {
		if call.Body, err = json.Marshal(body); err != nil {
			return answer, err
		}
	}
	response, err := c.Do(ctx, call)
	if err != nil {
		return answer, err
	}
	defer response.Body.Close()
	if err = json.NewDecoder(response.Body).Decode(&answer); errors.Is(err, io.EOF) { // no content
		err = nil
	}
	return answer, err
}

// Delete calls an operation that deletes what the path names.
func Delete(ctx context.Context, c caller, path string, in ...any) error {
	_, err := Call[any](ctx, c, "DELETE "+path, nil, in...)
	return err
}

// AwaitDeletion waits until the deletion has succeeded and returns it.
func AwaitDeletion(ctx context.Context, c caller, id core.DeletionID) (core.Deletion, error) {
	for {
		d, err := Call[core.Deletion](ctx, c, "GET /deletions/%s", nil, id)
		if err != nil || d.Status == core.DeletionSucceeded || !process.Pause(ctx, 20*time.Millisecond) {
			return d, errors.Join(err, context.Cause(ctx))
		}
	}
}
