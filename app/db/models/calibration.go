package models

import (
	"time"

	"bobbin/app/core"
)

// Calibration is a row of model_calibrations.
type Calibration struct {
	Model              string `gorm:"primaryKey"`
	Factor             float64
	Deviation          float64
	Samples            int
	Window             int        `gorm:"column:told_window"`
	WindowAt           *time.Time `gorm:"column:told_at"`
	PrefixContract     string     `gorm:"column:contract"`
	RefusesToolChanges bool
	UpdatedAt          time.Time `gorm:"autoUpdateTime:false"`
}

// TableName is the table's name.
func (Calibration) TableName() string { return "model_calibrations" }

// Core returns the calibration of the row.
func (r Calibration) Core() core.Calibration {
	r.UpdatedAt, r.WindowAt = toUTC(r.UpdatedAt), toUTCPtr(r.WindowAt)
	return core.Calibration(r)
}
