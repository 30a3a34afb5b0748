package repositories

import (
	"context"
	"maps"
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

// Save stores the calibrations, replacing those of the same models. Of two for one model
// the last counts.
func (r *Calibrations) Save(ctx context.Context, list []core.Calibration) error {
	byModel := map[string]core.Calibration{}
	for _, c := range list {
		if c.UpdatedAt.IsZero() {
			c.UpdatedAt = core.Now()
		}
		byModel[c.Model] = c
	}
	// A fixed order prevents deadlocks between replicas.
	rows := make([]core.Calibration, 0, len(byModel))
	for _, model := range slices.Sorted(maps.Keys(byModel)) {
		rows = append(rows, byModel[model])
	}
	err := insertRows(r.db.WithContext(ctx).Clauses(clause.OnConflict{
		Columns: []clause.Column{{Name: "model"}}, UpdateAll: true,
	}), &rows)
	return wrapError(err, "calibrations", "")
}
