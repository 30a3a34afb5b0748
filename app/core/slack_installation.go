package core

import "time"

// SlackInstallationState says whether the tokens of an installation work.
type SlackInstallationState string

// The states of an installation.
const (
	SlackInstalled SlackInstallationState = "active"
	SlackRevoked   SlackInstallationState = "revoked" // Slack says that the app was removed, or its tokens revoked
)

// SlackInstallation is a workspace of Slack in which the app was installed by OAuth.
type SlackInstallation struct {
	Team      string `gorm:"primaryKey"` // id of the workspace
	Name      string
	App       string
	BotUser   string
	Owner     string // of the sessions
	Scopes    string // separated by commas
	Tokens    []byte // sealed; nil when revoked
	State     SlackInstallationState
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}
