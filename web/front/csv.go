package front

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/doorward/doorward"
)

// writeCSV answers with rows as a CSV download (RFC 4180), with a byte order mark if marked.
func (c *Call) writeCSV(ctx context.Context, rows [][]string, next *doorward.Position, marked bool) error {
	cursor, err := c.Cursor(ctx, next)
	if err != nil {
		return err
	}
	h := c.W.Header()
	if cursor != "" {
		h.Set("Link", "<"+c.nextPage(cursor)+`>; rel="next"`)
	}
	h.Set("Content-Type", "text/csv; charset=utf-8")
	name := c.R.URL.Path[strings.LastIndexByte(c.R.URL.Path, '/')+1:]
	h.Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
	c.W.WriteHeader(http.StatusOK)
	if marked {
		_, _ = io.WriteString(c.W, "\ufeff") // fails if the client has disconnected
	}
	out := csv.NewWriter(c.W)
	out.UseCRLF = true
	for _, row := range rows {
		for i := range row {
			row[i] = harmlessCell(row[i])
		}
		_ = out.Write(row) // fails if the client has disconnected
	}
	out.Flush()
	return nil
}

// harmlessCell keeps a spreadsheet from reading untrusted text as a formula (OWASP, CSV
// Injection). In many locales spreadsheets separate cells by semicolons, so the text after a
// semicolon becomes a cell, perhaps a quoted one.
func harmlessCell(text string) string {
	cells := strings.Split(text, ";")
	for i, cell := range cells {
		if beginsFormula(cell) || i > 0 && beginsFormula(strings.TrimLeft(cell, `"`)) {
			cells[i] = "'" + cell
		}
	}
	return strings.Join(cells, ";")
}

// beginsFormula reports whether spreadsheets take the text for a formula. Full-width
// characters start formulas in Japanese ones.
func beginsFormula(text string) bool {
	first, _ := utf8.DecodeRuneInString(text)
	return text != "" && strings.ContainsRune("=+-@\t\r\n＝＋－＠", first)
}
