package databasetest

// Tests with libraries over database/sql: they get the leased *sql.DB, and nothing else changes.

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"testing"
	"time"

	bywash "bywash.dev/go"

	"github.com/jmoiron/sqlx"
	gormpostgres "gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
)

// mapper is a library over database/sql. The function read reads one value by a query with one
// argument; reads does the same in a transaction.
type mapper struct {
	read, reads func(ctx context.Context, into *string, query string, value any) error
}

func overSqlx(_ *testing.T, db *sql.DB) mapper {
	handle := sqlx.NewDb(db, "pgx")
	return mapper{
		read: func(ctx context.Context, into *string, query string, value any) error {
			return handle.GetContext(ctx, into, handle.Rebind(query), value)
		},
		reads: func(ctx context.Context, into *string, query string, value any) error {
			begun, err := handle.BeginTxx(ctx, nil)
			if err != nil {
				return err
			}
			defer begun.Rollback()
			if err := begun.GetContext(ctx, into, begun.Rebind(query), value); err != nil {
				return err
			}
			return begun.Commit()
		},
	}
}

func overGorm(config gorm.Config) func(*testing.T, *sql.DB) mapper {
	return func(t *testing.T, db *sql.DB) mapper {
		config.Logger = logger.Discard
		handle, err := gorm.Open(gormpostgres.New(gormpostgres.Config{Conn: db}), &config)
		must(t, err)
		read := func(handle *gorm.DB, into *string, query string, value any) error {
			return handle.Raw(query, value).Scan(into).Error
		}
		return mapper{
			read: func(ctx context.Context, into *string, query string, value any) error {
				return read(handle.WithContext(ctx), into, query, value)
			},
			reads: func(ctx context.Context, into *string, query string, value any) error {
				return handle.WithContext(ctx).Transaction(func(begun *gorm.DB) error { return read(begun, into, query, value) })
			},
		}
	}
}

func TestAClientWhoLeavesEndsTheQueryOfALibrary(t *testing.T) {
	for name, over := range map[string]func(*testing.T, *sql.DB) mapper{
		"sqlx": overSqlx, "gorm": overGorm(gorm.Config{}), "gorm with PrepareStmt": overGorm(gorm.Config{PrepareStmt: true}),
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, kinds[0])
			s.db.SetMaxOpenConns(1)
			by := over(t, s.db)
			t.Run("alone", func(t *testing.T) {
				number := s.leavesWhile(t, by.read)
				if again := s.number(context.Background(), s.db); again != number {
					t.Error("the connection was closed, although its query was cancelled")
				}
			})
			t.Run("in a transaction", func(t *testing.T) { s.leavesWhile(t, by.reads) })
			if cancelled := s.daemon.number(`bywash_stopd_cancelled_total{database="shop"}`); cancelled != 2 {
				t.Errorf("the daemon has cancelled %v", cancelled)
			}
			if stats := s.stopClient.Stats(); stats.Leased != 4 || stats.Unnamed != 0 || stats.Doubtful != 0 {
				t.Errorf("%+v", stats)
			}
		})
	}
}

// leavesWhile lets a client leave during a long query, and waits until the query is over in the
// database. It returns the number of its connection.
func (s *shop) leavesWhile(t *testing.T, read func(context.Context, *string, string, any) error) uint64 {
	number, ended := make(chan uint64, 1), make(chan error, 1)
	server := s.serve(func(_ http.ResponseWriter, r *http.Request) {
		number <- s.number(r.Context(), s.db)
		var slept string
		err := read(r.Context(), &slept, "SELECT pg_sleep(?::float)::text", 20)
		if err == context.Canceled {
			err = context.Cause(r.Context())
		}
		ended <- err
	})
	leave := s.visit(server, "")
	query := begun{<-number, ended}
	sleeps := func() bool {
		return s.count(fmt.Sprintf("SELECT count(*) FROM pg_stat_activity WHERE pid = %d AND wait_event = 'PgSleep'", query.number)) == 1
	}
	until(t, "it runs", sleeps)
	left := time.Now()
	leave()
	until(t, "it is cancelled in the database", func() bool { return !sleeps() })
	t.Logf("from the close to the end of the query: %v", time.Since(left))
	is(t, query.end(t), bywash.ClientLeft)
	return query.number
}
