package repositories

import (
	"cmp"
	"context"
	"slices"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"bobbin/app/core"
)

// Calibrations stores the token calibration of models. Safe for concurrent use.
type Calibrations struct{ db *gorm.DB }

// NewCalibrations returns the calibrations in db.
func NewCalibrations(db *gorm.DB) *Calibrations { return &Calibrations{db: db} }

// All returns every calibration, ordered by model.
func (r *Calibrations) All(ctx context.Context) ([]core.Calibration, error) {
	list, err := findRows[core.Calibration](r.db.WithContext(ctx).Order("model"))
	return list, wrapError(err, "calibrations", "")
}

// Save stores the calibrations of different models, replacing those of the same models.
func (r *Calibrations) Save(ctx context.Context, list []core.Calibration) error {
	// A fixed order prevents deadlocks between replicas.
	rows := slices.SortedFunc(slices.Values(list), func(a, b core.Calibration) int { return cmp.Compare(a.Model, b.Model) })
	for i := range rows {
		if rows[i].UpdatedAt.IsZero() {
			rows[i].UpdatedAt = core.Now()
		}
	}
	if len(rows) == 0 {
		return nil
	}
	return wrapError(r.db.WithContext(ctx).Clauses(clause.OnConflict{UpdateAll: true}).Create(&rows).Error, "calibrations", "")
}
