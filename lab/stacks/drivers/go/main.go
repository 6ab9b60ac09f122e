// An application for `scripts/stacks drivers`: it runs the query of its request with the driver that
// its first argument names. The SDK's README has the lines that lease connections. The second
// argument is `sdk` or `plain`; plain requests have no class, so the SDK passes them untouched.
package main

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"log"
	"net/http"
	"net/url"
	"os"
	"time"

	bywash "bywash.dev/go"
	"bywash.dev/go/bywashpgx"

	"entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"
	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgconn/ctxwatch"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/pgdialect"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
)

// query runs a text that returns one value.
type query func(ctx context.Context, text string) (string, error)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func connector(name, address string) (driver.Connector, bywash.Database) {
	switch name {
	case "pq":
		return must(pq.NewConnector(address + "?sslmode=disable")), bywash.Postgres("shop")
	case "mysql":
		place := must(url.Parse(address))
		config := mysql.NewConfig()
		config.User, config.Passwd, config.Net, config.Addr, config.DBName = "shop", "lab", "tcp", place.Host, "shop"
		return must(mysql.NewConnector(config)), bywash.MySQL("shop")
	}
	return stdlib.GetConnector(*must(pgx.ParseConfig(address))), bywash.Postgres("shop")
}

// over returns how a library runs a query on a leased *sql.DB.
func over(name string, db *sql.DB) query {
	switch name {
	case "sqlx":
		handle := sqlx.NewDb(db, "pgx")
		return func(ctx context.Context, text string) (found string, err error) {
			err = handle.GetContext(ctx, &found, text)
			return found, err
		}
	case "gorm":
		handle := must(gorm.Open(postgres.New(postgres.Config{Conn: db}), &gorm.Config{}))
		return func(ctx context.Context, text string) (found string, err error) {
			err = handle.WithContext(ctx).Raw(text).Scan(&found).Error
			return found, err
		}
	case "ent":
		handle := entsql.OpenDB(dialect.Postgres, db)
		return func(ctx context.Context, text string) (found string, err error) {
			var rows entsql.Rows
			if err := handle.Query(ctx, text, []any{}, &rows); err != nil {
				return "", err
			}
			defer rows.Close()
			err = entsql.ScanOne(rows, &found)
			return found, err
		}
	case "bun":
		handle := bun.NewDB(db, pgdialect.New())
		return func(ctx context.Context, text string) (found string, err error) {
			err = handle.NewRaw(text).Scan(ctx, &found)
			return found, err
		}
	}
	return func(ctx context.Context, text string) (found string, err error) {
		err = db.QueryRowContext(ctx, text).Scan(&found)
		return found, err
	}
}

// overPool returns how pgx without database/sql runs a query, with the set-up of the README.
func overPool(address string, stopClient *bywash.StopClient, isLeased bool) query {
	config := must(pgxpool.ParseConfig(address))
	if isLeased {
		config.ConnConfig.Tracer = must(bywashpgx.NewTracer(stopClient, "shop"))
		config.ConnConfig.BuildContextWatcherHandler = func(conn *pgconn.PgConn) ctxwatch.Handler {
			return &pgconn.CancelRequestContextWatcherHandler{Conn: conn, DeadlineDelay: 5 * time.Second}
		}
	}
	pool := must(pgxpool.NewWithConfig(context.Background(), config))
	return func(ctx context.Context, text string) (found string, err error) {
		err = pool.QueryRow(ctx, text).Scan(&found)
		return found, err
	}
}

func main() {
	name, isLeased, address := os.Args[1], os.Args[2] == "sdk", os.Getenv("DATABASE")
	stopClient := bywash.NewStopClient("")
	var run query
	if name == "pgxpool" {
		run = overPool(address, stopClient, isLeased)
	} else {
		plain, database := connector(name, address)
		run = over(name, sql.OpenDB(must(stopClient.Connector(plain, database))))
	}
	controller := must(bywash.NewController(bywash.NewClass("search", time.Second, 30*time.Second)))
	var handler http.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found, err := run(r.Context(), r.URL.Query().Get("query"))
		if bywash.Checkpoint(r.Context()) != nil {
			return // answered with 504
		} else if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		_, _ = w.Write([]byte(found))
	})
	if isLeased {
		handler = must(controller.Middleware("search"))(handler)
	}
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), handler))
}
