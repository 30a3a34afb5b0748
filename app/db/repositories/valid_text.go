package repositories

import (
	"reflect"

	"gorm.io/gorm"

	"bobbin/app/db/commit"
	"bobbin/app/db/models"
)

// insertRows inserts the rows, a pointer to a row or to a slice of rows, in one statement.
// An empty slice needs no statement. ErrInvalid for text that cannot be stored.
func insertRows(tx *gorm.DB, rows any) error {
	if v := reflect.Indirect(reflect.ValueOf(rows)); v.Kind() == reflect.Slice && v.Len() == 0 {
		return nil
	}
	if err := commit.Check(tx, rows); err != nil {
		return err
	}
	return tx.Create(rows).Error
}

// storableChanges returns changes, or ErrInvalid if one of the texts cannot be stored.
func storableChanges(changes map[string]any) (map[string]any, error) {
	for _, v := range changes {
		var err error
		switch v := v.(type) {
		case models.JSON:
			err = models.CheckJSON(v)
		default:
			if r := reflect.Indirect(reflect.ValueOf(v)); r.Kind() == reflect.String {
				err = models.CheckText(r.String())
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return changes, nil
}
