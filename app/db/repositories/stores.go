package repositories

import "bobbin/app/core"

// The repositories are the stores of core.
var (
	_ core.SessionStore           = (*Sessions)(nil)
	_ core.MessageStore           = (*Messages)(nil)
	_ core.BranchStore            = (*Branches)(nil)
	_ core.SummaryStore           = (*Summaries)(nil)
	_ core.RunStore               = (*Runs)(nil)
	_ core.EventStore             = (*Events)(nil)
	_ core.SearchStore            = (*Search)(nil)
	_ core.BlobStore              = (*Blobs)(nil)
	_ core.MemoryStore            = (*Memories)(nil)
	_ core.UsageStore             = (*ModelCalls)(nil)
	_ core.AliasStore             = (*Aliases)(nil)
	_ core.SlackThreadStore       = (*SlackThreads)(nil)
	_ core.SlackPostStore         = (*SlackPosts)(nil)
	_ core.SlackInboxStore        = (*SlackInbox)(nil)
	_ core.SlackInstallationStore = (*SlackInstallations)(nil)
	_ core.WebhookStore           = (*OwnerWebhooks)(nil)
	_ core.DeliveryStore          = (*Deliveries)(nil)
	_ core.APIKeyStore            = (*APIKeys)(nil)
	_ core.AuditLog               = (*Audit)(nil)
)
