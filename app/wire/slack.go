package wire

import (
	"log/slog"

	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/transfer"
	"bobbin/app/core/config"
	"bobbin/app/purge"
	"bobbin/app/slack"
)

// NewSlack builds what takes in messages of Slack, and what posts to its threads; nil if Slack
// is off. The feed names the sessions in which something happens.
func NewSlack(d Deps, service *chat.Service, files *blobs.Service, history *transfer.Service) (*slack.Service, *slack.Outbox, error) {
	settings := d.Config.Slack
	if !settings.Enabled() {
		return nil, nil, nil
	}
	clients, err := slack.NewClients(settings, d.Stores.SlackInstallations, d.Logger)
	if err != nil {
		return nil, nil, err
	}
	in := slack.New(slack.Options{
		Settings: settings, Clients: clients, Chat: service, Transfer: history, Files: files, Inbox: d.Stores.SlackInbox, Threads: d.Stores.SlackThreads,
		Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Runs: d.Stores.Runs, Worker: d.Worker, Observer: d.Telemetry, Logger: d.Logger,
	})
	out := slack.NewOutbox(slack.OutboxOptions{
		Threads: d.Stores.SlackThreads, Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Feed: d.Feed,
		Clients: clients, Worker: d.Worker, Logger: d.Logger,
	})
	d.Feed.NotifySessions(out.Wakeups())
	return in, out, nil
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

// newOfflineOutbox builds what removes posts from Slack in a process that does not serve; nil if
// Slack is off.
func newOfflineOutbox(settings config.Slack, stores Stores, log *slog.Logger) (*slack.Outbox, error) {
	if !settings.Enabled() {
		return nil, nil
	}
	clients, err := slack.NewClients(settings, stores.SlackInstallations, log)
	if err != nil {
		return nil, err
	}
	return slack.NewOutbox(slack.OutboxOptions{Threads: stores.SlackThreads, Posts: stores.SlackPosts, Clients: clients, Logger: log}), nil
}
