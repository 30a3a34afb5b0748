package extract

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/xuri/excelize/v2"
)

// readExcel sends the rows of each sheet as they are displayed: dates and numbers in their
// formats, formulas with their saved results.
func readExcel(data []byte, w *writer) error {
	book, err := excelize.OpenReader(bytes.NewReader(data), excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: maxUnpacked})
	switch {
	case errors.Is(err, excelize.ErrWorkbookPassword):
		return faultError(faultLocked)
	case err != nil && strings.Contains(err.Error(), "unzip size exceeds"):
		return faultError(faultUnpacked)
	case err != nil:
		return err
	}
	sheets := book.GetSheetList()
	if len(sheets) == 0 {
		return faultError(faultBroken)
	}
	for _, name := range sheets[:min(len(sheets), maxPages)] {
		if visible, err := book.GetSheetVisible(name); err == nil && !visible {
			err = w.writeText(fmt.Sprintf("sheet %q is hidden and was left out", name), "")
			if err != nil {
				return err
			}
			continue
		}
		if err := readSheet(book, name, w); err != nil {
			return err
		}
	}
	return nil
}

// readSheet sends the rows of a sheet in batches.
func readSheet(book *excelize.File, name string, w *writer) error {
	rows, err := book.Rows(name)
	if err != nil {
		return err
	}
	defer rows.Close()
	if err := w.writeText(fmt.Sprintf("sheet %q", name), ""); err != nil {
		return err
	}
	const batch = 64 << 10
	var out strings.Builder
	for rows.Next() {
		cells, err := rows.Columns()
		if err != nil {
			return err
		}
		if line := strings.TrimRight(rowText(cells), "\t"); line != "" {
			out.WriteString(line + "\n")
		}
		if out.Len() > batch {
			if err := w.writeText("", out.String()); err != nil {
				return err
			}
			out.Reset()
		}
	}
	if err := w.writeText("", out.String()); err != nil {
		return err
	}
	return rows.Error()
}

// rowText returns the cells of a row as one line.
func rowText(cells []string) string {
	for i, c := range cells {
		cells[i] = strings.Join(strings.FieldsFunc(c, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
	}
	return strings.Join(cells, "\t")
}
