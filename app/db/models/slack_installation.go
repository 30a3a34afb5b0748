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
	State     string
	CreatedAt time.Time `gorm:"autoCreateTime:false"`
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}

// SlackInstallationFrom returns the row of an installation.
func SlackInstallationFrom(i core.SlackInstallation) SlackInstallation {
	return SlackInstallation{
		Team: i.Team, Name: i.Name, App: i.App, BotUser: i.BotUser, Owner: i.Owner, Scopes: i.Scopes,
		Tokens: i.Tokens, State: string(i.State), CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
	}
}

// Core returns the installation of the row.
func (r SlackInstallation) Core() core.SlackInstallation {
	return core.SlackInstallation{
		Team: r.Team, Name: r.Name, App: r.App, BotUser: r.BotUser, Owner: r.Owner, Scopes: r.Scopes,
		Tokens: r.Tokens, State: core.SlackInstallationState(r.State), CreatedAt: toUTC(r.CreatedAt), UpdatedAt: toUTC(r.UpdatedAt),
	}
}
