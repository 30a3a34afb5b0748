package wire

import (
	"context"
	"log/slog"

	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/transfer"
	"bobbin/app/core/config"
	"bobbin/app/purge"
	"bobbin/app/slack"
)

// NewSlackClients builds the clients of workspaces of Slack; nil if Slack is off.
func NewSlackClients(settings config.Slack, stores Stores, log *slog.Logger) (*slack.Clients, error) {
	if !settings.Enabled() {
		return nil, nil
	}
	return slack.NewClients(settings, stores.SlackInstallations, log)
}

// findOrganization returns chat.Options.FindOrganization; nil if Slack is off.
func findOrganization(clients *slack.Clients) func(context.Context, string, string) (string, error) {
	if clients == nil {
		return nil
	}
	return clients.FindOrganization
}

// NewSlack builds what takes in messages of Slack, and what posts to its threads; nil if Slack
// is off. The feed names the sessions in which something happens.
func NewSlack(d Deps, service *chat.Service, files *blobs.Service, history *transfer.Service) (*slack.Service, *slack.Outbox) {
	if d.Slack == nil {
		return nil, nil
	}
	in := slack.New(slack.Options{
		Settings: d.Config.Slack, Clients: d.Slack, Chat: service, Transfer: history, Files: files, Inbox: d.Stores.SlackInbox, Threads: d.Stores.SlackThreads,
		Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Runs: d.Stores.Runs, Worker: d.Worker, Observer: d.Telemetry, Logger: d.Logger,
	})
	out := slack.NewOutbox(slack.OutboxOptions{
		Threads: d.Stores.SlackThreads, Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Feed: d.Feed,
		Clients: d.Slack, Worker: d.Worker, Logger: d.Logger,
	})
	d.Feed.NotifySessions(out.Wakeups())
	return in, out
}

// addSlack lets a purge also remove posts from Slack, and names from memory. In and out are nil if
// Slack is off.
func addSlack(o purge.Options, in *slack.Service, out *slack.Outbox) purge.Options {
	if out != nil {
		o.DeletePosts = out.PurgePosts
	}
	if in != nil {
		o.ForgetUser = in.ForgetUser
	}
	return o
}
