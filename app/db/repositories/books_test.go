package repositories_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bobbin/app/core"
	"bobbin/tests/must"
)

func TestCalibrations(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		at := time.Date(2026, 1, 2, 3, 4, 5, 678_000, time.UTC)
		a := core.Calibration{Model: "a", Factor: 1.17, Deviation: 0.02, Samples: 7, UpdatedAt: at}
		b := core.Calibration{Model: "b", Factor: 0.9, UpdatedAt: at}
		newer := a
		newer.Factor, newer.Samples, newer.Window, newer.WindowAt = 1.2, 8, 8192, &at
		for _, list := range [][]core.Calibration{nil, {b, a}, {newer}, {b, newer}} {
			must.Do(t, s.calibrations.Save(t.Context(), list))
		}
		got, err := s.calibrations.All(t.Context())
		if diff := cmp.Diff([]core.Calibration{newer, b}, got); err != nil || diff != "" {
			t.Errorf("calibrations (-want +got): %v\n%s", err, diff)
		}
		wantError(t, "NUL", s.calibrations.Save(t.Context(), []core.Calibration{{Model: "\x00"}}), core.ErrInvalid)
		race(racers, func(i int) {
			if err := s.calibrations.Save(t.Context(), []core.Calibration{{Model: fmt.Sprint(i % 3)}, {Model: fmt.Sprint((i + 1) % 3)}}); err != nil {
				t.Errorf("save %d: %v", i, err)
			}
		})
	})
}

// The database itself refuses a second active run, whatever a program does.
func TestOneActiveRunIsTheDatabasesLaw(t *testing.T) {
	each(t, func(t *testing.T, s *store) {
		id := s.session(t).ID
		s.accept(t, ask(id, "one"))
		second := s.accept(t, ask(id, "two")).Run
		for _, status := range []string{"running", "waiting"} {
			err := s.Gorm.WithContext(t.Context()).Exec("UPDATE runs SET status = ? WHERE id = ?", status, second.ID).Error
			if err == nil {
				t.Errorf("a second run is %s: got no error", status)
			}
		}
	})
}
