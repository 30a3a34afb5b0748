package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/slack-go/slack"

	"bobbin/app/core"
)

// postMessage posts a message that is new in the log.
func (f *follower) postMessage(ctx context.Context, m core.Message) error {
	if user := slackOrigin(m).User; user != "" {
		f.asker = cmp.Or(slackPersonOf(m.AuthorID), slackPerson{f.Team, user}) // one that is linked by e-mail is of this workspace
	}
	if m.Role != core.RoleTool {
		if err := f.completeDraft(ctx, m); err != nil {
			return err
		}
	}
	if len(m.ToolCalls) > 0 && strings.TrimSpace(m.Content) == "" {
		f.toolMessage = m.ID
	}
	if !isShown(m) || f.draft != nil && f.draft.message == m.ID {
		return nil
	}
	return f.showMessage(ctx, m)
}

type origin struct {
	TS   string `json:"ts"`
	User string `json:"user"`
}

// slackOrigin returns where in Slack the message was written; zero for others.
func slackOrigin(m core.Message) origin {
	var metadata struct {
		Slack origin `json:"slack"`
	}
	if m.Source != core.SourceSlack || json.Unmarshal(m.Metadata, &metadata) != nil {
		return origin{}
	}
	return metadata.Slack
}

// isShown reports whether the message belongs into the thread: an answer, or what a user
// wrote elsewhere.
func isShown(m core.Message) bool {
	if m.DeletedAt != nil || slackOrigin(m).TS != "" || strings.TrimSpace(m.Content) == "" && len(attachmentNames(m)) == 0 {
		return false
	}
	return m.Role == core.RoleAssistant || m.Role == core.RoleUser && m.Source != core.SourceSlack
}

// updateMessage shows a message as it is now, if it was posted.
func (f *follower) updateMessage(ctx context.Context, m core.Message) error {
	posts, err := f.Posts.Of(ctx, f.SessionID, string(m.ID))
	if err != nil || len(posts) == 0 {
		return err
	}
	if err := f.closeDraft(ctx); err != nil {
		return err
	}
	switch {
	case isShown(m):
		return f.showMessage(ctx, m)
	case m.DeletedAt == nil:
		return nil // the tool calls of an answer without a text
	}
	for _, p := range posts {
		if err := f.remove(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// discardMessage marks what was shown of a message that will not be completed.
func (f *follower) discardMessage(ctx context.Context, id core.MessageID) error {
	if err := f.closeDraft(ctx); err != nil {
		return err
	}
	posts, err := f.Posts.Of(ctx, f.SessionID, string(id))
	if err != nil {
		return err
	}
	for i, p := range posts {
		if i > 0 {
			err = f.remove(ctx, p)
		} else {
			err = f.edit(ctx, p, content{text: discardedNote, blocks: []slack.Block{note(discardedNote)}})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

const discardedNote = "This answer was interrupted. Another attempt follows."

// markPath marks messages that left the current path, and removes the marks of those that
// came back to it.
func (f *follower) markPath(ctx context.Context) error {
	posts, err := f.Posts.Misplaced(ctx, f.SessionID)
	if err != nil || len(posts) == 0 {
		return err
	}
	for some := range slices.Chunk(itemIDs(posts), core.MaxPageLimit) {
		messages, err := f.Messages.GetMessages(ctx, f.tenant, f.SessionID, some)
		if err != nil {
			return err
		}
		for _, m := range messages {
			if err := f.showMessage(ctx, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// itemIDs returns the messages that the posts show, each once.
func itemIDs(posts []core.SlackPost) []core.MessageID {
	var ids []core.MessageID
	for _, p := range posts {
		if id := core.MessageID(p.ItemID); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// postMissing posts the messages after the last one that was posted, and repairs what was: the
// events that report what happened are no longer kept.
func (f *follower) postMissing(ctx context.Context) error {
	if err := f.closeDraft(ctx); err != nil {
		return err
	}
	posts, err := f.Posts.Outdated(ctx, f.SessionID)
	if err != nil {
		return err
	}
	for _, id := range itemIDs(posts) {
		m, err := f.Messages.Get(ctx, f.tenant, f.SessionID, id)
		switch isDraft := errors.Is(err, core.ErrNotFound); {
		case isDraft && f.active: // it may be being written
			err = nil
		case isDraft:
			err = f.discardMessage(ctx, id)
		case err == nil:
			err = f.updateMessage(ctx, m)
		}
		if err != nil {
			return err
		}
	}
	_, posted, err := f.Posts.LastPosted(ctx, f.SlackThread)
	if err != nil {
		return err
	}
	q := core.MessageQuery{After: max(f.FirstSeq, posted)}
	err = core.EachPage(func(cursor string) (core.Page[core.Message], error) {
		q.Cursor = cursor
		return f.Messages.List(ctx, f.tenant, f.SessionID, q)
	}, func(m core.Message) error {
		if !isShown(m) {
			return nil
		}
		return f.showMessage(ctx, m)
	})
	if err != nil {
		return err
	}
	return f.markPath(ctx)
}

// showMessage makes the posts of a message what it says: those that are there are changed,
// missing ones are sent, superfluous ones removed.
func (f *follower) showMessage(ctx context.Context, m core.Message) error {
	posts, err := f.Posts.Of(ctx, f.SessionID, string(m.ID))
	if err != nil {
		return err
	}
	text := neutralizeMentions(m.Content)
	lines := scanLines(text)
	var spans []span
	from := 0
	for _, p := range posts[:max(len(posts)-1, 0)] {
		if p.From != from || p.To <= from || p.To >= len(text) || text[p.To-1] != '\n' || core.UTF16Len(text[from:p.To]) > maxPost {
			break
		}
		spans, from = append(spans, span{p.From, p.To}), p.To
	}
	rest := splitText(text, from)
	if len(spans)+len(rest) == 0 {
		rest = []span{{0, 0}} // attached files alone
	}
	spans = append(spans, rest...)
	for i, s := range spans {
		c := f.messageContent(m, renderLines(text, lines, s), i == 0, i == len(spans)-1)
		p := f.newPost(core.SlackPostMessage, string(m.ID), i)
		if i < len(posts) {
			p = posts[i]
		}
		p.From, p.To, p.OffPath = s.from, s.to, !m.OnPath
		if p.State != core.SlackPostSent {
			if p, err = f.post(ctx, p, c); err != nil {
				return err
			}
			p.From, p.To, p.OffPath = s.from, s.to, !m.OnPath
		}
		if err := f.edit(ctx, p, c); err != nil {
			return err
		}
	}
	for _, p := range posts[min(len(spans), len(posts)):] {
		if err := f.remove(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// messageContent returns what a part of a message shows.
func (f *follower) messageContent(m core.Message, text string, first, last bool) content {
	c := content{text: plainText(text)}
	if first && m.Role == core.RoleUser {
		name := cmp.Or(cleanName(m.Author), "User")
		c.text = plainText(name + ": " + text)
		c.blocks = append(c.blocks, note(name+" · "+string(cmp.Or(m.Source, core.SourceWeb))))
	}
	if strings.TrimSpace(text) != "" {
		c.blocks = append(c.blocks, slack.NewMarkdownBlock("", text))
	}
	if names := attachmentNames(m); last && len(names) > 0 {
		c.blocks = append(c.blocks, note("Attached: "+strings.Join(names, ", ")))
		c.text = cmp.Or(c.text, plainText(strings.Join(names, ", ")))
	}
	if last && m.Status == core.MessagePartial {
		c.blocks = append(c.blocks, note("stopped"))
	}
	if !m.OnPath {
		c.blocks = append(c.blocks, note(offPathNote))
	}
	if last && isRated(m) {
		c.blocks = append(c.blocks, feedbackButtons())
	}
	return c
}

// isRated reports whether people may rate the message: a complete answer.
func isRated(m core.Message) bool {
	return m.Role == core.RoleAssistant && m.Status == core.MessageComplete && m.OnPath && len(m.ToolCalls) == 0
}

// feedbackButtons are the buttons below an answer.
func feedbackButtons() slack.Block {
	button := func(text string, rating core.Rating) *slack.FeedbackButton {
		return slack.NewFeedbackButton(slack.NewTextBlockObject(slack.PlainTextType, text, false, false), string(rating))
	}
	return slack.NewContextActionsBlock("", slack.NewFeedbackButtonsBlockElement(core.SlackActionFeedback, button("Good answer", core.RatingUp), button("Bad answer", core.RatingDown)))
}

// offPathNote says that a message is not on the current path.
const offPathNote = "not part of the conversation any more"

// maxNote bounds a note, in bytes.
const maxNote = 500

// note is a line in small print, in plain text.
func note(text string) slack.Block {
	return slack.NewContextBlock("", slack.NewTextBlockObject(slack.PlainTextType, core.Clip(text, maxNote), false, false))
}

func attachmentNames(m core.Message) []string {
	var names []string
	for _, p := range m.Parts {
		if p.BlobID != "" {
			names = append(names, cmp.Or(p.Name, p.MediaType, p.Type))
		}
	}
	return names
}
