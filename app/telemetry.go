package app

import "bobbin/app/telemetry"

// newMetrics returns what counts everything that this Bobbin does.
func (a *App) newMetrics(build Build) *telemetry.Metrics {
	return telemetry.New(telemetry.Options{
		Build:    telemetry.Build{Version: build.Version, Commit: build.Commit, Go: build.Go},
		Database: a.database.Pool(),
	})
}
