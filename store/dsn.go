package store

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckDSN returns nil when Open could make sense of dsn, without opening
// anything. The error repeats no part of it, since a mistyped one may hold the
// password anywhere.
func CheckDSN(dsn string) error {
	path, isSQLite := strings.CutPrefix(dsn, "sqlite:")
	switch {
	case isSQLite && path != "":
		return nil
	case strings.HasPrefix(dsn, "postgres://"), strings.HasPrefix(dsn, "postgresql://"):
		return checkPostgresDSN(dsn)
	}
	return errors.New("store: write sqlite:PATH, or postgres://USER:PASSWORD@HOST/NAME")
}

func checkPostgresDSN(dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn)
	what := "a host has no @"
	switch {
	case err != nil:
		what = reason(dsn, err)
	case !strings.Contains(cfg.ConnConfig.Host, "@"):
		return nil
	}
	return fmt.Errorf("store: this postgres:// URL can't be read: %s; in user and password write @ as %%40, : as %%3A, / as %%2F, ? as %%3F, # as %%23, %% as %%25", what)
}

// reason is what pgx says behind the DSN, which it quotes between backticks,
// and before the cause, which may quote some of it.
func reason(dsn string, err error) string {
	_, after, ok := strings.Cut(err.Error(), "`: ")
	if !ok || strings.Contains(dsn, "`") {
		return "it is malformed"
	}
	text, _, _ := strings.Cut(after, " (")
	return text
}
