package slack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/slack-go/slack"

	"bobbin/app/core"
	"bobbin/app/core/prompttext"
	"bobbin/app/core/redact"
)

// How much is shown of a tool's arguments, in UTF-16 units. Slack takes 3,000 characters in a section
// and 13,200 in a post.
const (
	maxSection   = 2_900
	maxArguments = 4 * maxSection
	minArgument  = 80 // of an argument that is shortened, in characters
)

// partlyShown takes the place of the button to approve a call that is not shown whole.
const partlyShown = "Not all of this call is shown here: it is too long, or a secret is hidden. See it whole and approve it on the page of the session, or with: bobbin runs approve %s"

// showApproval shows the question whether a tool may start, or what became of it. Of one that
// was decided before it could be shown, nothing is.
func (f *follower) showApproval(ctx context.Context, a core.Approval) error {
	posts, err := f.Posts.Of(ctx, f.SessionID, string(a.ID))
	if err != nil {
		return err
	}
	if len(posts) > 0 && posts[0].State == core.SlackPostSent {
		return f.edit(ctx, posts[0], approvalContent(a))
	}
	if a.Status != core.ApprovalOpen {
		return nil
	}
	_, err = f.post(ctx, f.newPost(core.SlackPostApproval, string(a.ID), 0), approvalContent(a))
	return err
}

// approvalContent returns the question with its buttons, or what became of it.
func approvalContent(a core.Approval) content {
	title := fmt.Sprintf("May the tool %s start?", core.Clip(a.Tool, maxName))
	if a.Status != core.ApprovalOpen {
		outcome := string(a.Status)
		if by := slackPersonOf(a.DecidedBy); by.user != "" {
			outcome += " by <@" + by.user + ">"
		} else if a.DecidedBy != "" {
			outcome += " by " + plainText(cleanName(a.DecidedBy))
		}
		if a.Comment != "" {
			outcome += plainText(" (" + strings.Join(strings.Fields(a.Comment), " ") + ")")
		}
		text := plainText(core.Clip(a.Tool, maxName)) + ": " + outcome
		return content{text: text, blocks: []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, false))}}
	}
	if a.Kind == core.KindClientTool {
		text := "The app that brought the tool " + plainText(core.Clip(a.Tool, maxName)) + " answers this call."
		return content{text: text, blocks: []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, false))}}
	}
	button := func(action, text string, style slack.Style) slack.BlockElement {
		return slack.NewButtonBlockElement(action, string(a.RunID)+"/"+string(a.ID), slack.NewTextBlockObject(slack.PlainTextType, text, false, false)).WithStyle(style)
	}
	args, whole := argumentsText(a.Arguments)
	c := content{text: plainText(title)}
	buttons := []slack.BlockElement{button(core.SlackActionApprove, "Approve", slack.StylePrimary), button(core.SlackActionDeny, "Deny", slack.StyleDanger)}
	texts := []string{title}
	for n := 0; args != ""; args = args[n:] {
		n = core.UTF16Index(args, maxSection)
		texts = append(texts, args[:n])
	}
	if !whole {
		texts, buttons = append(texts, fmt.Sprintf(partlyShown, a.RunID)), buttons[1:]
	}
	for _, text := range texts {
		c.blocks = append(c.blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.PlainTextType, text, false, false), nil, nil))
	}
	c.blocks = append(c.blocks, slack.NewActionBlock("", buttons...))
	return c
}

// argumentsText returns the arguments of a call for people: each on a line of its own, in the
// model's order, exactly as they are, with what is invisible escaped. Whole is false if that is
// too long, so that values are shortened in their middle, or a secret is hidden.
func argumentsText(arguments string) (text string, whole bool) {
	lines := []string{core.Literal(arguments)} // of what is no object
	d := json.NewDecoder(strings.NewReader(arguments))
	if open, _ := d.Token(); open == json.Delim('{') && json.Valid([]byte(arguments)) {
		d.UseNumber() // float64 lacks the last digits of a long one
		lines = nil
		for d.More() {
			name, _ := d.Token() // it is valid
			var value any
			_ = d.Decode(&value)
			lines = append(lines, literalJSON(name)+": "+literalJSON(value))
		}
	}
	whole = true
	for i, line := range lines {
		lines[i] = redact.Text(line)
		whole = whole && lines[i] == line
	}
	if text = strings.Join(lines, "\n"); core.UTF16Len(text) <= maxArguments {
		return text, whole
	}
	each := max(maxArguments/2/len(lines), minArgument) // characters: one may have two units
	for i, line := range lines {
		lines[i] = prompttext.Characters(line, each)
	}
	text = strings.Join(lines, "\n")
	return text[:core.UTF16Index(text, maxArguments)], false
}

// literalJSON returns a value as JSON on one line in which only what is invisible is escaped.
func literalJSON(value any) string {
	raw, _ := core.EncodeJSON(value) // it was JSON
	return core.Literal(string(raw))
}

// slackUserID matches the id of a user of Slack.
var slackUserID = regexp.MustCompile(`^[UW][A-Z0-9]+$`)

// slackPerson is a person of Slack and the workspace that the person belongs to; zero = nobody.
type slackPerson struct{ team, user string }

// slackPersonOf returns who the user "slack:<team>/<user>" is; zero for others, also bots.
func slackPersonOf(user string) slackPerson {
	rest, ok := strings.CutPrefix(user, "slack:")
	team, id, _ := strings.Cut(rest, "/")
	if !ok || !slackUserID.MatchString(id) {
		return slackPerson{}
	}
	return slackPerson{team, id}
}

// reportFailure tells the person in Slack who asked why the run failed.
func (f *follower) reportFailure(ctx context.Context, run core.Run) error {
	user := cmp.Or(slackPersonOf(run.User), f.asker).user
	if user == "" || run.Input.Source != core.SourceSlack || run.Error == nil {
		return nil
	}
	err := f.call(ctx, func(ctx context.Context, api *client) error {
		_, err := api.PostEphemeralContext(ctx, f.Channel, user, slack.MsgOptionTS(f.Thread), slack.MsgOptionText(plainText(run.Error.Message), false))
		return err
	})
	return f.changeError(ctx, core.SlackPost{ItemID: string(run.ID)}, err)
}
