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
	"bobbin/app/core/redact"
)

// maxArguments bounds what is shown of a tool's arguments, in bytes.
const maxArguments = 1000

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
		text := plainText(core.Clip(a.Tool, maxName)) + ": " + approvalOutcome(a)
		return content{text: text, blocks: []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, false))}}
	}
	if a.Kind == core.KindClientTool {
		text := "The app that brought the tool " + plainText(core.Clip(a.Tool, maxName)) + " answers this call."
		return content{text: text, blocks: []slack.Block{slack.NewContextBlock("", slack.NewTextBlockObject(slack.MarkdownType, text, false, false))}}
	}
	button := func(action, text string, style slack.Style) slack.BlockElement {
		return slack.NewButtonBlockElement(action, string(a.RunID)+"/"+string(a.ID), slack.NewTextBlockObject(slack.PlainTextType, text, false, false)).WithStyle(style)
	}
	c := content{text: plainText(title)}
	c.blocks = append(c.blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.PlainTextType, title, false, false), nil, nil))
	if args := argumentsText(a.Arguments); args != "" {
		c.blocks = append(c.blocks, slack.NewSectionBlock(slack.NewTextBlockObject(slack.PlainTextType, args, false, false), nil, nil))
	}
	return content{text: c.text, blocks: append(c.blocks, slack.NewActionBlock("",
		button(core.SlackActionApprove, "Approve", slack.StylePrimary), button(core.SlackActionDeny, "Deny", slack.StyleDanger)))}
}

// argumentsText returns the arguments of a call for people, without secrets.
func argumentsText(arguments string) string {
	var fields map[string]any
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return core.Clip(redact.Text(arguments), maxArguments)
	}
	if len(fields) == 0 {
		return ""
	}
	raw, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return ""
	}
	return core.Clip(redact.Text(string(raw)), maxArguments)
}

// slackUserID matches the id of a user of Slack.
var slackUserID = regexp.MustCompile(`^[UW][A-Z0-9]+$`)

// approvalOutcome says in Slack's markup what became of a question. A person of Slack is
// mentioned: the post is an edit, which notifies nobody.
func approvalOutcome(a core.Approval) string {
	outcome := string(a.Status)
	if by := slackPersonOf(a.DecidedBy); by.user != "" {
		outcome += " by <@" + by.user + ">"
	} else if a.DecidedBy != "" {
		outcome += " by " + plainText(cleanName(a.DecidedBy))
	}
	if a.Comment != "" {
		outcome += plainText(" (" + strings.Join(strings.Fields(a.Comment), " ") + ")")
	}
	return outcome
}

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
