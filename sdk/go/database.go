package bywash

// database/sql with leases: a driver.Connector around any driver's, so that each statement of a request is leased
// from before it begins to after its end, and its rows are closed. What the handler writes stays as it is.

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Database is what is to be known of a kind of database. Postgres, MySQL and InProcess make one.
type Database struct {
	name string
	// number asks it for the number of a connection; empty if that is in this process.
	number      string
	isCancelled func(error) bool
}

// Postgres is a database that bywash sentry knows by this name, [database.NAME]; with any driver.
func Postgres(name string) Database {
	return Database{name, "SELECT pg_backend_pid()", isSQLState57014}
}

// MySQL is one for MySQL or MariaDB.
func MySQL(name string) Database { return Database{name, "SELECT CONNECTION_ID()", isError1317} }

// InProcess is a database in this process (SQLite) whose driver interrupts a query when its context is cancelled.
func InProcess() Database { return Database{ownDatabase, "", isInterrupt} }

func isSQLState57014(err error) bool {
	var stated interface{ SQLState() string }
	return errors.As(err, &stated) && stated.SQLState() == "57014"
}

// isError1317: github.com/go-sql-driver/mysql has the number in a field, and this package has no dependencies.
func isError1317(err error) bool { return hasField(err, "Number", 1317) }

// isInterrupt: SQLite's result code is a field with mattn's driver, a method with modernc's.
func isInterrupt(err error) bool {
	var coded interface{ Code() int }
	return errors.As(err, &coded) && coded.Code()&0xff == 9 || hasField(err, "Code", 9)
}

func hasField(err error, name string, number uint64) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		value := reflect.Indirect(reflect.ValueOf(err))
		if value.Kind() != reflect.Struct {
			continue
		}
		field := value.FieldByName(name)
		if field.CanUint() && field.Uint() == number || field.CanInt() && uint64(field.Int()) == number {
			return true
		}
	}
	return false
}

// Connector is a connector whose connections are leased, for sql.OpenDB. A driver that has none is wrapped with
// what its OpenConnector returns.
func (s *Sentry) Connector(wrapped driver.Connector, database Database) (driver.Connector, error) {
	if !isName(database.name, 32, "_-") || database.number != "" && database.name == ownDatabase {
		return nil, fmt.Errorf("bywash: %q is no name of a database: 1 to 32 letters, digits or any of _ -, and not %s",
			database.name, ownDatabase)
	}
	return &connector{wrapped, s, &database}, nil
}

type connector struct {
	driver.Connector
	sentry   *Sentry
	database *Database
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	wrapped, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	made := &connection{wrapped: wrapped, sentry: c.sentry, database: c.database}
	if c.database.number != "" && c.sentry.conversation() != nil {
		if err := made.learnNumber(ctx); err != nil {
			_ = wrapped.Close()
			return nil, err
		}
	}
	return made.asAble(), nil
}

// Close is for sql.DB.Close.
func (c *connector) Close() error {
	if closer, ok := c.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
