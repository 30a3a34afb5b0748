package wire

import (
	"log/slog"

	"bobbin/app/blobs"
	"bobbin/app/chat"
	"bobbin/app/chat/transfer"
	"bobbin/app/core/config"
	"bobbin/app/slack"
)

// NewSlackClients builds the clients of workspaces of Slack; nil if Slack is off.
func NewSlackClients(settings config.Slack, stores Stores, log *slog.Logger) (*slack.Clients, error) {
	if !settings.Enabled() {
		return nil, nil
	}
	return slack.NewClients(settings, stores.SlackInstallations, log)
}

// slackApp is the chat.Options.SlackApp of a process.
type slackApp struct {
	*slack.Clients
	*slack.Outbox
}

// NewSlackPosts builds what posts to threads of Slack; nil if Slack is off.
func NewSlackPosts(d Deps) *slack.Outbox {
	if d.Slack == nil {
		return nil
	}
	return slack.NewOutbox(slack.OutboxOptions{
		Threads: d.Stores.SlackThreads, Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Messages: d.Stores.Messages, Feed: d.Feed,
		Clients: d.Slack, Worker: d.Worker, Logger: d.Logger,
	})
}

// NewSlack builds what takes in messages of Slack; nil if Slack is off.
func NewSlack(d Deps, service *chat.Service, files *blobs.Service, history *transfer.Service) *slack.Service {
	if d.Slack == nil {
		return nil
	}
	return slack.New(slack.Options{
		Settings: d.Config.Slack, Clients: d.Slack, Chat: service, Transfer: history, Files: files, Inbox: d.Stores.SlackInbox, Threads: d.Stores.SlackThreads,
		Posts: d.Stores.SlackPosts, Sessions: d.Stores.Sessions, Runs: d.Stores.Runs, Worker: d.Worker, Observer: d.Telemetry, Logger: d.Logger,
	})
}
