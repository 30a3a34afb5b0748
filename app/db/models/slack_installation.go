package models

import (
	"time"

	"bobbin/app/core"
)

// SlackInstallation is a row of slack_installations.
type SlackInstallation struct {
	Team      string `gorm:"primaryKey"`
	Name      string
	App       string
	BotUser   string
	Owner     string
	Scopes    string
	Tokens    []byte // NULL when revoked
	State     core.SlackInstallationState
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}

// Core returns the installation of the row.
func (r SlackInstallation) Core() core.SlackInstallation {
	r.CreatedAt, r.UpdatedAt = toUTC(r.CreatedAt), toUTC(r.UpdatedAt)
	return core.SlackInstallation(r)
}
