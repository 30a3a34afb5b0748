package app

import "bobbin/app/blobs"

// buildFiles builds the use cases of images and files.
func (a *App) buildFiles() *blobs.Service {
	f := a.cfg.Files
	return blobs.New(blobs.Options{
		Store: a.repos.blobs, Sessions: a.repos.sessions, Counter: a.counter, Logger: a.log,
		Limits: blobs.Limits{Bytes: int64(f.Bytes), PerMessage: f.PerMessage, Total: int64(f.TotalBytes), User: int64(f.UserBytes), Types: f.Types},
	})
}
