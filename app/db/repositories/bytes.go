package repositories

import (
	"strings"

	"gorm.io/gorm"
)

// longColumns are the columns of a table that may be long.
type longColumns struct {
	texts   []string
	jsons   []string
	related []string // SQL expressions for the bytes of rows that are read with each row
}

// largeJSON is the stored size in bytes from which the length of a JSON column is estimated
// on PostgreSQL: measuring it would decompress it.
const largeJSON = "65536"

// sumSQL returns an SQL expression for the bytes of the columns, or an upper bound.
func (w longColumns) sumSQL(db *gorm.DB) string {
	var terms []string
	for _, column := range w.texts {
		terms = append(terms, "COALESCE(octet_length("+column+"), 0)")
	}
	for _, column := range w.jsons {
		length := "octet_length(" + column + ")"
		if isPostgres(db) { // which compresses to a hundredth at best
			length = "CASE WHEN pg_column_size(" + column + ") > " + largeJSON + " THEN pg_column_size(" + column + ") * 100 ELSE octet_length(" + column + "::text) END"
		}
		terms = append(terms, "COALESCE("+length+", 0)")
	}
	for _, bytes := range w.related {
		terms = append(terms, "COALESCE("+bytes+", 0)")
	}
	return strings.Join(terms, " + ")
}

// fitRows returns how many of the first limit rows of an ordered list fit into that many
// bytes, at least 1. It measures the rows without reading them.
func fitRows(list *gorm.DB, w longColumns, limit int, bytes int64) (int, error) {
	if limit <= 1 {
		return limit, nil
	}
	var sizes []int64
	if err := list.Session(&gorm.Session{}).Select(w.sumSQL(list)).Limit(limit).Scan(&sizes).Error; err != nil {
		return 0, err
	}
	for i, size := range sizes {
		if bytes -= size; bytes < 0 && i > 0 {
			return i, nil
		}
	}
	return limit, nil
}
