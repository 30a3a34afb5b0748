package apptest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bobbin/app/db"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
	"bobbin/tests/seed"
)

// Marks are texts that occur nowhere else, one for each place where a user's text
// can be.
type Marks struct {
	Places  []string // in the order of the first use
	ByPlace map[string]string
}

var marks = seed.Fixed(1, 2) //nolint:gochecknoglobals // no two marks of a program are alike

// Of returns the mark of a place. It is one word in every language, and its ending
// alone is told apart, too: an index may keep beginnings only once.
func (m *Marks) Of(place string) string {
	if m.ByPlace == nil {
		m.ByPlace = map[string]string{}
	}
	if m.ByPlace[place] == "" {
		m.Places = append(m.Places, place)
		m.ByPlace[place] = fmt.Sprintf("zq%012x%012x", marks.Uint64()>>16, marks.Uint64()>>16)
	}
	return m.ByPlace[place]
}

// Find returns the places whose marks are in one of the files.
func (m *Marks) Find(t *testing.T, folders []string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			if errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			data = bytes.ToLower(data)
			for place, mark := range m.ByPlace {
				if bytes.Contains(data, []byte(mark[len(mark)/2:])) {
					found[place] = path
				}
			}
			return err
		})
		must.Do(t, err)
	}
	return found
}

// Disk is what a Bobbin has stored: its database and all files, which are searched for marks.
type Disk struct {
	*Bobbin

	Database *db.DB
	Folders  []string // where the files are
	Marks    Marks
}

// NewDisk opens the database of a Bobbin, which is at url.
func NewDisk(t testing.TB, h *Bobbin, url string) *Disk {
	t.Helper()
	d := &Disk{Bobbin: h, Database: dbtest.Open(t, url)}
	d.Folders = []string{h.Config.DataDir, d.tables(url)}
	return d
}

// tables returns the folder of the database's files.
func (d *Disk) tables(url string) string {
	d.T.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		return filepath.Dir(path)
	}
	var dir, oid string
	d.ReadRow(&dir, "SELECT current_setting('data_directory')")
	d.ReadRow(&oid, "SELECT oid::text FROM pg_database WHERE datname = current_database()")
	return filepath.Join(dir, "base", oid)
}

// ReadRow reads the only value of a query.
func (d *Disk) ReadRow(into any, query string, args ...any) {
	d.T.Helper()
	if err := d.Database.Gorm.WithContext(d.T.Context()).Raw(query, args...).Row().Scan(into); err != nil {
		d.T.Fatalf("%s: %v", query, err)
	}
}

// Exec executes a statement in the database.
func (d *Disk) Exec(stmt string, args ...any) {
	d.T.Helper()
	res := d.Database.Gorm.WithContext(d.T.Context()).Exec(stmt, args...)
	if res.Error != nil {
		d.T.Fatalf("%s: %v", stmt, res.Error)
	}
}
