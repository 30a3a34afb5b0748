package db_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"github.com/google/go-cmp/cmp"
	"gorm.io/gorm/schema"

	"bobbin/app/core"
	"bobbin/app/db"
	"bobbin/app/db/models"
	"bobbin/tests/compare"
	"bobbin/tests/dbtest"
	"bobbin/tests/must"
)

// column is a column in words that both databases share.
type column struct {
	Kind     string // text, json, id, integer, float, time, bool, bytes
	Nullable bool
}

// table is a table likewise. Index definitions are texts: "unique (a, b) where …".
type table struct {
	Columns    map[string]column
	PrimaryKey string
	Indexes    []string
	References []string
}

// readSchema returns the tables of the database, without goose's own.
func readSchema(t *testing.T, d *db.DB) map[string]table {
	t.Helper()
	tables := map[string]table{}
	for _, name := range queryTexts(t, d, map[string]string{
		"sqlite":   "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
		"postgres": "SELECT tablename FROM pg_tables WHERE schemaname = 'public'",
	}[d.Dialect()]) {
		if name == "goose_db_version" || strings.HasPrefix(name, "search_words") { // SQLite's full text
			continue
		}
		tables[name] = readTable(t, d, name)
	}
	return tables
}

func queryTexts(t *testing.T, d *db.DB, query string, args ...any) []string {
	t.Helper()
	var out []string
	if err := d.Gorm.WithContext(t.Context()).Raw(query, args...).Scan(&out).Error; err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return out
}

func readTable(t *testing.T, d *db.DB, name string) table {
	t.Helper()
	var rows []struct {
		Name, Type string
		Nullable   bool
		Position   int // in the primary key; 0 = not in it
	}
	query := `SELECT c.column_name AS name, c.data_type AS type, c.is_nullable = 'YES' AS nullable, COALESCE(k.ordinal_position, 0) AS position
		FROM information_schema.columns c
		LEFT JOIN information_schema.key_column_usage k ON k.table_name = c.table_name AND k.column_name = c.column_name
			AND k.constraint_name = c.table_name || '_pkey'
		WHERE c.table_schema = 'public' AND c.table_name = ?`
	if d.Dialect() == "sqlite" {
		query = `SELECT name, type, "notnull" = 0 AS nullable, pk AS position FROM pragma_table_info(?)`
	}
	if err := d.Gorm.WithContext(t.Context()).Raw(query, name).Scan(&rows).Error; err != nil {
		t.Fatalf("columns of %s: %v", name, err)
	}
	tab := table{Columns: map[string]column{}}
	var key []string
	sort.Slice(rows, func(i, j int) bool { return rows[i].Position < rows[j].Position })
	for _, r := range rows {
		if r.Type == "tsvector" { // PostgreSQL's full text
			continue
		}
		tab.Columns[r.Name] = column{Kind: kind(r.Name, r.Type), Nullable: r.Nullable}
		if r.Position > 0 {
			key = append(key, r.Name)
		}
	}
	tab.PrimaryKey = strings.Join(key, ", ")
	tab.Indexes = readIndexes(t, d, name)
	tab.References = readReferences(t, d, name)
	return tab
}

// kind says what a column holds. SQLite has TEXT for what PostgreSQL has types
// for; there the name tells.
func kind(name, sqlType string) string {
	switch strings.ToLower(sqlType) {
	case "uuid", "text", "json", "jsonb":
		return "text"
	case "bigint", "integer":
		return "integer"
	case "timestamp with time zone", "datetime":
		return "time"
	case "boolean":
		return "bool"
	case "bytea", "blob":
		return "bytes"
	case "double precision", "real":
		return "float"
	}
	return "unknown " + sqlType + " of " + name
}

func readIndexes(t *testing.T, d *db.DB, name string) []string {
	t.Helper()
	defs := queryTexts(t, d, map[string]string{
		"sqlite":   "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL AND tbl_name = ?",
		"postgres": "SELECT indexdef FROM pg_indexes WHERE schemaname = 'public' AND tablename = ? AND indexname NOT LIKE '%\\_pkey'",
	}[d.Dialect()], name)
	out := []string{}
	for _, def := range defs {
		// The order of a search comes from these only on PostgreSQL.
		if strings.Contains(def, " USING gin ") || strings.Contains(def, " search_entries_newest ") {
			continue
		}
		out = append(out, plainIndex(def))
	}
	slices.Sort(out)
	return out
}

// plainIndex brings both ways to write an index into one.
func plainIndex(def string) string {
	def = strings.NewReplacer("public.", "", "USING btree ", "", "::text", "", "[]", "", `"`, "").Replace(def)
	def = regexp.MustCompile(`= ANY \(\(?ARRAY\[([^\]]*)\]\)?\)`).ReplaceAllString(def, "IN ($1)")
	head, where, found := strings.Cut(def, " WHERE ")
	if found {
		in := regexp.MustCompile(`IN \(([^)]*)\)`).FindString(where)
		where = strings.ReplaceAll(where, in, "LIST")
		where = strings.NewReplacer("(", "", ")", "").Replace(where)
		head += " WHERE " + strings.ReplaceAll(where, "LIST", in)
	}
	return strings.Join(strings.Fields(head), " ")
}

func readReferences(t *testing.T, d *db.DB, name string) []string {
	t.Helper()
	out := queryTexts(t, d, map[string]string{
		"sqlite": `SELECT "from" || ' -> ' || "table" || '.' || "to" || CASE on_delete WHEN 'CASCADE' THEN ' cascade' ELSE '' END FROM pragma_foreign_key_list(?)`,
		"postgres": `SELECT a.attname || ' -> ' || r.relname || '.' || f.attname || CASE c.confdeltype WHEN 'c' THEN ' cascade' ELSE '' END
			FROM pg_constraint c JOIN pg_class r ON r.oid = c.confrelid
			CROSS JOIN LATERAL unnest(c.conkey, c.confkey) AS k (here, there)
			JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = k.here
			JOIN pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = k.there
			WHERE c.contype = 'f' AND c.conrelid = CAST(? AS regclass)`,
	}[d.Dialect()], name)
	slices.Sort(out)
	return out
}

func compareSchemas(t *testing.T, nameA string, a map[string]table, nameB string, b map[string]table) {
	t.Helper()
	diff := cmp.Diff(a, b)
	compare.True(t, diff == "", "schemas differ (-%s +%s):\n%s", nameA, nameB, diff)
}

func TestBothSchemasAreTheSame(t *testing.T) {
	t.Parallel()
	lite, postgres := readSchema(t, dbtest.SQLite(t)), readSchema(t, dbtest.Postgres(t))
	compareSchemas(t, "sqlite", lite, "postgres", postgres)
	// What the comparison would not miss if it were missing in both.
	for name, want := range map[string]string{
		"runs":              "CREATE UNIQUE INDEX runs_one_active ON runs (session_id) WHERE status IN ('running', 'waiting')",
		"messages":          "CREATE UNIQUE INDEX messages_seq ON messages (session_id, seq)",
		"session_summaries": "CREATE UNIQUE INDEX session_summaries_version ON session_summaries (session_id, version)",
	} {
		compare.True(t, slices.Contains(postgres[name].Indexes, want), "%s: got indexes %q, want one of them to be %q", name, postgres[name].Indexes, want)
	}
	refs := lite["sessions"].References
	compare.True(t, slices.Contains(refs, "summary_through_id -> messages.id"), "sessions: got references %q, want summary_through_id -> messages.id", refs) // W2
	for name, tab := range lite {
		_, owned := tab.Columns["owner"]
		if !owned && name != "model_calibrations" && name != "message_vector_work" && name != "receiver_outages" && name != "write_checks" && name != "signing_keys" { // facts about models, the index, hosts and the database, nobody's
			t.Errorf("%s has no owner", name)
		}
	}
}

// messageVectorWork and writeCheck are rows that only statements read and write.
type messageVectorWork struct {
	ID          int64 `gorm:"primaryKey;autoIncrement:false"`
	Model       string
	Dimension   int
	Worker      string
	LeasedUntil *time.Time
}

// TableName is the table's name.
func (messageVectorWork) TableName() string { return "message_vector_work" }

type writeCheck struct {
	ID        int `gorm:"primaryKey"`
	CheckedAt *time.Time
}

// Every table has a row type with the same columns, of the same kind and
// nullability.
func TestRowsFitTheSchema(t *testing.T) {
	t.Parallel()
	rows := []any{
		models.Session{}, models.SessionReader{}, models.SessionAlias{}, models.SlackThread{}, core.SlackPost{}, core.SlackInstallation{}, core.Message{}, core.Revision{}, core.StandingInstruction{}, models.PromptSetup{}, models.Run{}, models.Event{}, core.Summary{}, core.ToolExecution{}, core.Approval{}, models.Delivery{}, models.Deletion{}, models.SlackItem{},
		models.SearchEntry{}, models.MessageVector{}, messageVectorWork{}, models.APIKey{}, core.AuditEntry{},
		core.ModelCall{}, core.Memory{}, models.Blob{}, models.BlobContent{}, models.BlobReference{}, models.BlobText{}, models.SigningKey{}, models.BlobTotal{}, models.IdempotencyKey{}, models.IdempotencyMention{}, models.UsageDay{}, models.OwnerWebhook{}, core.Calibration{}, writeCheck{},
	}
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		tables := readSchema(t, d)
		delete(tables, "receiver_outages") // of earlier versions
		compare.Equal(t, "tables: want one for each row type", len(rows), len(tables))
		for _, row := range rows {
			s := must.Get(schema.Parse(row, &sync.Map{}, d.Gorm.NamingStrategy))(t)
			want := table{Columns: map[string]column{}, PrimaryKey: strings.Join(s.PrimaryFieldDBNames, ", ")}
			for _, f := range s.Fields {
				if f.DBName != "" {
					want.Columns[f.DBName] = fieldColumn(f)
				}
			}
			got := tables[s.Table]
			if s.Table == "messages" { // only statements read it
				delete(got.Columns, "origin_id")
			}
			got.Indexes, got.References = nil, nil
			diff := cmp.Diff(want, got)
			compare.True(t, diff == "", "%s (-row +table):\n%s", s.Table, diff)
		}
	})
}

// fieldColumn says what column a field needs. A pointer, a Ref and bytes may be
// NULL; of JSON and bytes only the schema knows, so that is listed here.
func fieldColumn(f *schema.Field) column {
	always := []string{"runs.input", "session_events.data", "blob_contents.data", "signing_keys.secret"}
	must := slices.Contains(always, f.Schema.Table+"."+f.DBName)
	switch f.TagSettings["SERIALIZER"] {
	case "ref":
		return column{Kind: "text", Nullable: true}
	case "json", "native":
		return column{Kind: "text", Nullable: !must}
	case "vector":
		return column{Kind: "bytes", Nullable: true}
	}
	switch f.FieldType.String() {
	case "models.Ref":
		return column{Kind: "text", Nullable: true}
	case "models.JSON":
		return column{Kind: "text", Nullable: !must}
	case "[]uint8":
		return column{Kind: "bytes", Nullable: !must}
	}
	kinds := map[schema.DataType]string{
		schema.String: "text", schema.Int: "integer", schema.Float: "float", schema.Time: "time", schema.Bool: "bool",
	}
	return column{Kind: kinds[f.GORMDataType], Nullable: strings.HasPrefix(f.FieldType.String(), "*")}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		v := status(t, d)
		must.True(t, v.Current == 0 && v.Target >= 1 && v.Pending(), "empty database: got %+v, want version 0 of 1 or more", v)
		compare.Equal(t, "tables after asking for the status", 0, len(readSchema(t, d)))
		migrate(t, d)
		first := readSchema(t, d)
		migrate(t, d) // nothing to do
		if v := status(t, d); v.Current != v.Target || v.Pending() {
			t.Errorf("after Migrate: got %+v, want the newest", v)
		}
		compareSchemas(t, "first time", first, "second time", readSchema(t, d))
	})
}

// A database from before the baseline, complete or half migrated, is refused and left alone.
func TestMigrateRefusesASchemaBeforeTheBaseline(t *testing.T) {
	t.Parallel()
	for _, version := range []int{1, 79} {
		dbtest.EachURL(t, func(t *testing.T, url string) {
			d := dbtest.Open(t, url)
			for _, stmt := range []string{
				"CREATE TABLE goose_db_version (id integer PRIMARY KEY, version_id bigint NOT NULL, is_applied boolean NOT NULL)",
				"INSERT INTO goose_db_version VALUES (1, 0, true)", fmt.Sprintf("INSERT INTO goose_db_version VALUES (2, %d, true)", version),
				"CREATE TABLE sessions (id text PRIMARY KEY)", "INSERT INTO sessions VALUES ('kept')",
			} {
				if err := d.Gorm.WithContext(t.Context()).Exec(stmt).Error; err != nil {
					t.Fatalf("%s: %v", stmt, err)
				}
			}
			before := readSchema(t, d)
			err := d.Migrate(t.Context())
			must.True(t, errors.Is(err, db.ErrSchemaOlder), "got %v, want ErrSchemaOlder", err)
			for _, words := range []string{fmt.Sprintf("at version %d,", version), "bobbin sessions export <id>", "bobbin import <file>"} {
				compare.Contains(t, "err.Error(): want in it", words, err.Error())
			}
			compareSchemas(t, "before", before, "after", readSchema(t, d))
			compare.Equal(t, "sessions: want the one of before", []string{"kept"}, queryTexts(t, d, "SELECT id FROM sessions"))
			compare.Equal(t, "version", int64(version), status(t, d).Current)
		})
	}
}

func migrate(t *testing.T, d *db.DB) {
	t.Helper()
	must.Do(t, d.Migrate(t.Context()))
}

func status(t *testing.T, d *db.DB) db.Versions {
	t.Helper()
	return must.Get(d.MigrationStatus(t.Context()))(t)
}

// Several replicas start concurrently on a new database: one migrates, all continue.
func TestConcurrentMigrators(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		var wg sync.WaitGroup
		for i := range 6 {
			wg.Go(func() {
				d, err := db.Open(t.Context(), url, discard())
				if err != nil {
					t.Errorf("replica %d: open: %v", i, err)
					return
				}
				defer func() { _ = d.Close() }()
				compare.Error(t, fmt.Sprintf("replica %d: migrate", i), nil, d.Migrate(t.Context()))
			})
		}
		wg.Wait()
		v := status(t, dbtest.Open(t, url))
		compare.True(t, !v.Pending(), "got %+v, want the newest version", v)
	})
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d *db.DB) {
		err := d.Gorm.WithContext(t.Context()).Exec("INSERT INTO goose_db_version (version_id, is_applied) VALUES (999, true)").Error
		must.Do(t, err)
		err = d.Migrate(t.Context())
		compare.True(t, errors.Is(err, db.ErrSchemaNewer) && strings.Contains(err.Error(), "version 999"), "got %v, want ErrSchemaNewer that names version 999", err)
		v := status(t, d)
		compare.True(t, v.Current == 999 && !v.Pending(), "status: got %+v, want version 999", v)
	})
}

// A process stops waiting for the lock when its context ends.
func TestMigrateStopsWaiting(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		d := dbtest.Open(t, url)
		unlock := holdLock(t, d, url)
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		compare.Error(t, "d.Migrate(ctx)", context.DeadlineExceeded, d.Migrate(ctx))
		compare.Equal(t, "status while another process migrates: want version 0", 0, status(t, d).Current)
		unlock()
		migrate(t, d)
	})
}

// holdLock takes the migration lock as another process would.
func holdLock(t *testing.T, d *db.DB, url string) (unlock func()) {
	t.Helper()
	check := func(err error) {
		must.Do(t, err)
	}
	if path, ok := strings.CutPrefix(url, "sqlite://"); ok {
		lock := flock.New(path + ".migrate.lock")
		check(lock.Lock())
		return func() { check(lock.Unlock()) }
	}
	other := dbtest.Open(t, url).Gorm.WithContext(t.Context()).Begin()
	check(other.Error)
	check(other.Exec("SELECT pg_advisory_xact_lock(x'626f6262696e'::bigint)").Error)
	return func() { check(other.Rollback().Error) }
}
