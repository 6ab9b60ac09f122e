package bywash

// Leases for database/sql: a driver.Connector around any driver's. Each statement of a request is
// leased from before it begins until it has ended and its rows are closed. Handlers stay as they
// are.

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"reflect"
)

// Database describes a kind of database and its name. Postgres, MySQL and InProcess make one.
type Database struct {
	name string
	// The query for the number of a connection; empty for a database in this process.
	number      string
	isCancelled func(error) bool
}

// Postgres returns a PostgreSQL database that the stop daemon knows by this name, [database.NAME];
// it works with any driver.
func Postgres(name string) Database {
	return Database{name, "SELECT pg_backend_pid()", isSQLState57014}
}

// MySQL returns a MySQL or MariaDB database that the stop daemon knows by this name.
func MySQL(name string) Database { return Database{name, "SELECT CONNECTION_ID()", isError1317} }

// InProcess returns a database in this process (SQLite) whose driver interrupts a query when its
// context is cancelled.
func InProcess() Database { return Database{ownDatabase, "", isInterrupt} }

func isSQLState57014(err error) bool {
	var stated interface{ SQLState() string }
	return errors.As(err, &stated) && stated.SQLState() == "57014"
}

// isError1317 returns whether err is MySQL's error 1317. It looks for a field, since
// github.com/go-sql-driver/mysql has the number there and this package has no dependencies.
func isError1317(err error) bool { return hasField(err, "Number", 1317) }

// isInterrupt returns whether err is SQLite's result code for an interrupt. The code is a field
// with mattn's driver and a method with modernc's.
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

// Connector returns a connector for sql.OpenDB whose connections are leased. For a driver without a
// connector, wrap the result of its OpenConnector.
func (s *StopClient) Connector(wrapped driver.Connector, database Database) (driver.Connector, error) {
	if err := database.check(); err != nil {
		return nil, err
	}
	return &connector{wrapped, s, &database}, nil
}

func (d Database) check() error {
	if !isName(d.name, 32, "_-") || d.number != "" && d.name == ownDatabase {
		return fmt.Errorf("bywash: %q is not a name of a database: it must have 1 to 32 letters, digits or any of _ -, and not be %s",
			d.name, ownDatabase)
	}
	return nil
}

type connector struct {
	driver.Connector
	stopClient *StopClient
	database   *Database
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	wrapped, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	made := &connection{wrapped: wrapped, leases: Connection{stopClient: c.stopClient, database: c.database}}
	made.leases.learn = made.learnNumber
	if c.database.number != "" && c.stopClient.conversation() != nil {
		if err := made.learnNumber(ctx); err != nil {
			_ = wrapped.Close()
			return nil, err
		}
	}
	return made.asAble(), nil
}

// Close closes the wrapped connector. sql.DB.Close calls it.
func (c *connector) Close() error {
	if closer, ok := c.Connector.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
