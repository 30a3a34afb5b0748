package models

import (
	"time"

	"bobbin/app/core"
)

// Calibration is a row of model_calibrations.
type Calibration struct {
	Model     string `gorm:"primaryKey"`
	Factor    float64
	Deviation float64
	Samples   int
	UpdatedAt time.Time `gorm:"autoUpdateTime:false"`
}

// TableName is the table's name.
func (Calibration) TableName() string { return "model_calibrations" }

// CalibrationFrom returns the row of a calibration.
func CalibrationFrom(c core.Calibration) Calibration { return Calibration(c) }

// Core returns the calibration of the row.
func (r Calibration) Core() core.Calibration {
	r.UpdatedAt = utc(r.UpdatedAt)
	return core.Calibration(r)
}
