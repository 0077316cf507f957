package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
)

// CheckDSN returns nil when dsn is well-formed. It opens nothing. The error quotes
// no part of it, since a mistyped one may hold the password anywhere.
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

// SameDatabase reports whether two valid DSNs certainly name one database. It
// compares files and the parts of a URL, without connecting.
func SameDatabase(a, b string) bool {
	pathA, inFileA := strings.CutPrefix(a, "sqlite:")
	pathB, inFileB := strings.CutPrefix(b, "sqlite:")
	switch {
	case inFileA != inFileB:
		return false
	case inFileA:
		return sameFile(pathA, pathB)
	}
	return a == b || samePostgres(a, b)
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	if errA == nil && errB == nil {
		return os.SameFile(infoA, infoB)
	}
	a, errA = filepath.Abs(a)
	b, errB = filepath.Abs(b)
	return errA == nil && errB == nil && a == b
}

func samePostgres(a, b string) bool {
	cfgA, errA := pgxpool.ParseConfig(a)
	cfgB, errB := pgxpool.ParseConfig(b)
	if errA != nil || errB != nil {
		return false
	}
	toA, toB := cfgA.ConnConfig, cfgB.ConnConfig
	return toA.Host == toB.Host && toA.Port == toB.Port && toA.Database == toB.Database &&
		toA.RuntimeParams["search_path"] == toB.RuntimeParams["search_path"]
}

func checkPostgresDSN(dsn string) error {
	cfg, err := pgxpool.ParseConfig(dsn)
	cause := "the host contains an @"
	switch {
	case err != nil:
		cause = reason(dsn, err)
	case !strings.Contains(cfg.ConnConfig.Host, "@"):
		return nil
	}
	return fmt.Errorf("store: this postgres:// URL can't be read: %s; in user and password write @ as %%40, : as %%3A, / as %%2F, ? as %%3F, # as %%23, %% as %%25", cause)
}

// reason is what pgx's message says between the DSN, which it quotes in backticks, and
// the cause, which may quote parts of the DSN.
func reason(dsn string, err error) string {
	_, after, ok := strings.Cut(err.Error(), "`: ")
	if !ok || strings.Contains(dsn, "`") {
		return "it is malformed"
	}
	text, _, _ := strings.Cut(after, " (")
	return text
}
