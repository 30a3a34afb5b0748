package extract

import (
	"encoding/xml"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// workbook is what the cells of all sheets refer to, and the cell that is being read.
type workbook struct {
	*archive
	strings []string
	dates   map[int]string // the Go layout of each cell style that shows a date
	epoch   time.Time      // of dates, which are days since then
	out     *writer

	rows     strings.Builder // of the sheet that were not yet sent
	column   int             // of the current cell, or the next
	written  int             // the last column with text in the row; -1 = none
	kind     string          // of the cell
	style    int
	value    strings.Builder
	inValue  bool
	phonetic int // depth of phonetic text, which repeats the text before it
}

// sheet is a sheet of a workbook.
type sheet struct {
	name, file string
	hidden     bool
}

// readStructure reads the strings and styles, and returns the sheets in their order.
func (b *workbook) readStructure() (sheets []sheet, err error) {
	b.epoch = time.Date(1899, time.December, 30, 0, 0, 0, 0, time.UTC)
	files := map[string]string{}
	err = b.scanXML("xl/_rels/workbook.xml.rels", func(t xml.Token) error {
		if e, ok := t.(xml.StartElement); ok && e.Name.Local == "Relationship" && len(files) < maxPages {
			target := attributeValue(e, "Target")
			if !path.IsAbs(target) {
				target = path.Join("/xl", target)
			}
			files[attributeValue(e, "Id")] = strings.TrimPrefix(path.Clean(target), "/")
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = b.scanXML("xl/workbook.xml", func(t xml.Token) error {
		e, ok := t.(xml.StartElement)
		switch date := attributeValue(e, "date1904"); {
		case ok && e.Name.Local == "workbookPr" && (date == "1" || date == "true"):
			b.epoch = time.Date(1904, time.January, 1, 0, 0, 0, 0, time.UTC)
		case ok && e.Name.Local == "sheet" && len(sheets) < maxPages:
			state := attributeValue(e, "state")
			sheets = append(sheets, sheet{attributeValue(e, "name"), files[attributeValue(e, "id")], state != "" && state != "visible"})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	err = b.scanXML("xl/sharedStrings.xml", func(t xml.Token) error {
		b.visitValue(t)
		if e, ok := t.(xml.EndElement); ok && e.Name.Local == "si" {
			b.strings = append(b.strings, b.takeValue())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	formats, styles, inStyles := map[string]string{}, 0, false
	return sheets, b.scanXML("xl/styles.xml", func(t xml.Token) error {
		switch t := t.(type) {
		case xml.StartElement:
			switch {
			case t.Name.Local == "numFmt":
				formats[attributeValue(t, "numFmtId")] = attributeValue(t, "formatCode")
			case t.Name.Local == "cellXfs":
				inStyles = true
			case t.Name.Local == "xf" && inStyles:
				if layout := dateLayout(attributeValue(t, "numFmtId"), formats); layout != "" {
					b.dates[styles] = layout
				}
				styles++
			}
		case xml.EndElement:
			inStyles = inStyles && t.Name.Local != "cellXfs"
		}
		return nil
	})
}

// notDate matches the parts of a format that show no date.
var notDate = regexp.MustCompile(`"[^"]*"|\\.|\[[^\]]*\]`)

// dateLayout returns the Go layout for cells of a number format; "" = it shows a number
// (ECMA-376 part 1, 18.8.30).
func dateLayout(id string, formats map[string]string) string {
	code := ""
	switch id {
	case "14", "15", "16", "17":
		code = "y"
	case "18", "19", "20", "21", "45", "47":
		code = "h"
	case "22":
		code = "yh"
	}
	if custom, ok := formats[id]; ok {
		code = strings.ToLower(notDate.ReplaceAllString(custom, ""))
	}
	switch day, hour := strings.ContainsAny(code, "yd"), strings.Contains(code, "h"); {
	case day && hour:
		return time.DateTime
	case day:
		return time.DateOnly
	case hour:
		return time.TimeOnly
	default:
		return ""
	}
}

// readSheet sends the rows of a sheet in batches.
func (b *workbook) readSheet(s sheet) error {
	if err := b.out.writeText(fmt.Sprintf("sheet %q", s.name), ""); err != nil {
		return err
	}
	broken := b.scanXML(s.file, b.visitCell)
	if err := b.flush(); err != nil {
		return err
	}
	return broken
}

// visitCell adds what a token says to the rows.
func (b *workbook) visitCell(t xml.Token) error {
	b.visitValue(t)
	switch t := t.(type) {
	case xml.StartElement:
		switch t.Name.Local {
		case "row":
			b.column, b.written = 0, -1
		case "c":
			b.kind = attributeValue(t, "t")
			b.style, _ = strconv.Atoi(attributeValue(t, "s"))
			b.column = max(b.column, columnOf(attributeValue(t, "r")))
		}
	case xml.EndElement:
		switch t.Name.Local {
		case "c":
			if text := b.cellText(b.takeValue()); text != "" {
				b.rows.WriteString(strings.Repeat("\t", b.column-max(b.written, 0)) + text)
				b.written = b.column
			}
			b.column = min(b.column+1, maxColumns)
			if b.rows.Len() > maxText {
				return b.flush() // it is full
			}
		case "row":
			const batch = 64 << 10
			if b.written >= 0 {
				b.rows.WriteString("\n")
			}
			if b.rows.Len() > batch {
				return b.flush()
			}
		}
	}
	return nil
}

// flush sends the rows.
func (b *workbook) flush() error {
	text := b.rows.String()
	b.rows.Reset()
	return b.out.writeText("", text)
}

// visitValue collects the text of a value: a stored one, or the runs of a string.
func (b *workbook) visitValue(t xml.Token) {
	switch t := t.(type) {
	case xml.StartElement:
		switch t.Name.Local {
		case "rPh":
			b.phonetic++
		case "v", "t":
			b.inValue = b.phonetic == 0
		}
	case xml.EndElement:
		switch t.Name.Local {
		case "rPh":
			b.phonetic--
		case "v", "t":
			b.inValue = false
		}
	case xml.CharData:
		if b.inValue {
			b.value.Write(t)
		}
	}
}

// takeValue returns the collected text and begins a new one.
func (b *workbook) takeValue() string {
	defer b.value.Reset()
	return b.value.String()
}

// cellText returns what the current cell shows for a value, as one line.
func (b *workbook) cellText(value string) string {
	switch b.kind {
	case "s":
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 || n >= len(b.strings) {
			return ""
		}
		value = b.strings[n]
	case "b":
		value = map[string]string{"0": "FALSE", "1": "TRUE"}[value]
	case "", "n":
		number, err := strconv.ParseFloat(value, 64)
		switch layout := b.dates[b.style]; {
		case err == nil && layout != "" && number >= 0 && number < maxDay:
			return b.epoch.Add(time.Duration(number * 24 * float64(time.Hour))).Round(time.Second).Format(layout)
		case err == nil && len(value) > digits:
			return strconv.FormatFloat(number, 'g', digits, 64)
		}
	}
	return strings.Join(strings.FieldsFunc(value, func(r rune) bool { return r == '\n' || r == '\r' || r == '\t' }), " ")
}

// Limits of a sheet (ECMA-376 does not set them; Excel does).
const (
	maxColumns = 16_384
	maxDay     = 100_000 // the year 2173; a time.Duration ends in 2191
	digits     = 15      // of a number that is shown
)

// columnOf returns the column of a cell such as AB12, from 0.
func columnOf(cell string) int {
	column := 0
	for _, r := range cell {
		if r < 'A' || r > 'Z' || column > maxColumns {
			break
		}
		column = column*26 + int(r-'A') + 1
	}
	return min(max(column-1, 0), maxColumns)
}
