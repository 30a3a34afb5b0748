package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"bobbin/app/cli/term"
	"bobbin/app/client"
	"bobbin/app/core"
)

// withSession is withServer for the session whose id is, or begins with, name.
func (p *program) withSession(cmd *cobra.Command, name string, do func(context.Context, connection, core.SessionID) error) error {
	return p.withServer(cmd, func(ctx context.Context, s connection) error {
		id, err := findSession(ctx, s.client, name)
		if err != nil {
			return err
		}
		return do(ctx, s, id)
	})
}

// idLength is the length of a complete id, which is left to the server.
const idLength = 36

// What findSession and findRun compare with the beginning of an id.
const (
	maxScanned     = 1_000 // recent sessions
	maxRunSessions = 50    // recent sessions whose runs are looked at
)

// maxCandidates is how many ids pickID lists if the beginning of an id is ambiguous.
const maxCandidates = 5

// findSession returns the session whose id is the name, or the only one whose id begins with
// it.
func findSession(ctx context.Context, c *client.Client, name string) (core.SessionID, error) {
	if len(name) >= idLength || name == "" {
		return core.SessionID(name), nil
	}
	texts := map[string]string{}
	q := core.SessionQuery{PageQuery: core.PageQuery{Limit: core.MaxPageLimit}, Archived: true}
	for searched := 0; searched < maxScanned; {
		page, err := c.Sessions(ctx, q)
		if err != nil {
			return "", err
		}
		for _, s := range page.Items {
			texts[string(s.ID)] = s.Title
		}
		if searched += len(page.Items); page.NextCursor == nil {
			break
		}
		q.Cursor = *page.NextCursor
	}
	id, err := pickID("session", name, "sessions list", texts)
	return core.SessionID(id), err
}

// findRun is findSession for a run of the recent sessions.
func findRun(ctx context.Context, c *client.Client, name string) (core.RunID, error) {
	if len(name) >= idLength {
		return core.RunID(name), nil
	}
	runs, err := recentRuns(ctx, c, maxRunSessions)
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, r := range runs {
		texts[string(r.ID)] = r.Input.Content
	}
	id, err := pickID("run", name, "runs list <session id>", texts)
	return core.RunID(id), err
}

// recentRuns returns the newest runs of the n sessions with the newest activity.
func recentRuns(ctx context.Context, c *client.Client, n int) (runs []core.Run, err error) {
	page, err := c.Sessions(ctx, core.SessionQuery{PageQuery: core.PageQuery{Limit: n}, Archived: true})
	if err != nil {
		return nil, err
	}
	for _, s := range page.Items {
		page, err := c.Runs(ctx, s.ID, core.PageQuery{Limit: core.MaxPageLimit})
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.Items...)
	}
	return runs, nil
}

// pickID returns the only id that begins with name; list is the command that shows the ids.
func pickID(what, name, list string, texts map[string]string) (string, error) {
	var found []string
	for id := range texts {
		if strings.HasPrefix(id, strings.ToLower(name)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", core.Errorf(core.ErrNotFound, "no %s id begins with %s; %s %s shows the ids", what, name, programName(), list)
	case 1:
		return found[0], nil
	}
	slices.Sort(found)
	slices.Reverse(found) // the newest first
	var lines strings.Builder
	for i, id := range found {
		if i == maxCandidates {
			fmt.Fprintf(&lines, "\n  and %d more", len(found)-i)
			break
		}
		fmt.Fprintf(&lines, "\n  %s  %s", id, term.Line(texts[id], maxTitle))
	}
	return "", core.Errorf(core.ErrInvalid, "%d %s ids begin with %s; write more of the id:%s", len(found), what, name, &lines)
}

// maxTitle is the maximum width of titles in lists.
const maxTitle = 40

// lastSession returns the most recently used session, of the agent if one is named.
func lastSession(ctx context.Context, c *client.Client, agent string) (core.SessionID, error) {
	page, err := c.Sessions(ctx, core.SessionQuery{PageQuery: core.PageQuery{Limit: 1}, Agent: agent})
	if err != nil {
		return "", err
	}
	if len(page.Items) == 0 {
		return "", core.Errorf(core.ErrNotFound, "there is no session to continue yet")
	}
	return page.Items[0].ID, nil
}
