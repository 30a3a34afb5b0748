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

// maxScanned is how many recent sessions findSession compares with the beginning of an id.
const maxScanned = 1_000

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
	var found []string
	for id := range texts {
		if strings.HasPrefix(id, strings.ToLower(name)) {
			found = append(found, id)
		}
	}
	switch len(found) {
	case 0:
		return "", core.Errorf(core.ErrNotFound, "no session id begins with %s; %s sessions list shows the ids", name, programName())
	case 1:
		return core.SessionID(found[0]), nil
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
	return "", core.Errorf(core.ErrInvalid, "%d session ids begin with %s; write more of the id:%s", len(found), name, &lines)
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
