package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"bobbin/app/cli/term"
	"bobbin/app/core"
)

// findSlackThread returns the thread of the session; nil if it has none.
func findSlackThread(ctx context.Context, s connection, id core.SessionID) (*core.SlackThreadStatus, error) {
	thread, err := s.client.SlackThread(ctx, id)
	if errors.Is(err, core.ErrNotFound) {
		return nil, nil
	}
	return &thread, err
}

// printSlackStatus prints a session's thread, and what is wrong with its posts; nothing for nil.
func (p *program) printSlackStatus(t *core.SlackThreadStatus) {
	if t == nil {
		return
	}
	fmt.Fprintf(p.Out, "Slack: thread %s in channel %s, %s\n", t.Thread, t.Channel, t.Mode)
	if t.BehindSince != nil {
		fmt.Fprintf(p.Out, "  posts are missing since %s: %s\n", t.BehindSince.Local().Format(time.DateTime), cmp.Or(term.Line(t.Reason, maxReason), "they are being sent"))
	}
	for _, f := range t.Faults {
		fmt.Fprintf(p.Out, "  part %d of %s is %s in Slack: %s\n", f.Part+1, f.ItemID, f.State, term.Line(f.Reason, maxReason))
	}
}

// maxReason is how many characters are shown of why a post is not in Slack.
const maxReason = 200
