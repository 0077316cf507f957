package store

import (
	"context"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// Index is an index that the migrations make.
type Index struct {
	Name      string
	Statement string // that makes it, in one line
}

// indexStatement matches a statement of a migration that makes or drops an index. No migration renames one.
var indexStatement = regexp.MustCompile(`(?m)^(?:CREATE (?:UNIQUE )?|(DROP ))INDEX (\w+)[^;]*`)

// schemaIndexes returns the indexes that the migrations of this binary make and leave.
func schemaIndexes() (all []Index, err error) {
	names, err := fs.Glob(schemaFiles, "schema/*.sql")
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		text, err := fs.ReadFile(schemaFiles, name)
		if err != nil {
			return nil, err
		}
		for _, m := range indexStatement.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				all = slices.DeleteFunc(all, func(i Index) bool { return i.Name == m[2] })
				continue
			}
			all = append(all, Index{Name: m[2], Statement: strings.Join(strings.Fields(m[0]), " ")})
		}
	}
	return all, nil
}

// MissingIndexes returns the indexes of the schema that the database lacks, or that PostgreSQL can't use since making
// them has failed. Without one, answers are right and slow; without a unique one, races can leave two rows.
func (db *DB) MissingIndexes(ctx context.Context) ([]Index, error) {
	all, err := schemaIndexes()
	if err != nil {
		return nil, err
	}
	present, err := list(ctx, db.Read(), textField, db.engine.indexes)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(i Index) bool { return slices.Contains(present, i.Name) }), nil
}
