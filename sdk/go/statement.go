package bywash

// Prepared statements and rows of any driver, leased while they run.
//
// If an answer here has the same effect in database/sql as a missing interface, the method is
// always there; see connection.go.

import (
	"context"
	"database/sql/driver"
	"io"
	"reflect"
)

type statement struct {
	wrapped   driver.Stmt
	of        *connection
	isControl bool
}

// withConverter is a statement whose driver has a ColumnConverter. The type is separate, since
// database/sql would otherwise find the method in all statements, and would then check the number
// of values.
type withConverter struct{ *statement }

func (s withConverter) ColumnConverter(index int) driver.ValueConverter {
	return s.wrapped.(driver.ColumnConverter).ColumnConverter(index)
}

func (c *connection) statement(wrapped driver.Stmt, isControl bool) driver.Stmt {
	made := &statement{wrapped, c, isControl}
	if _, ok := wrapped.(driver.ColumnConverter); ok {
		return withConverter{made}
	}
	return made
}

func (s *statement) Close() error { return s.wrapped.Close() }

func (s *statement) NumInput() int { return s.wrapped.NumInput() }

func (s *statement) Exec(values []driver.Value) (driver.Result, error) { return s.wrapped.Exec(values) }

func (s *statement) Query(values []driver.Value) (driver.Rows, error) { return s.wrapped.Query(values) }

func (s *statement) CheckNamedValue(value *driver.NamedValue) error {
	if able, ok := s.wrapped.(driver.NamedValueChecker); ok {
		return able.CheckNamedValue(value)
	}
	return s.of.CheckNamedValue(value)
}

func (s *statement) QueryContext(ctx context.Context, values []driver.NamedValue) (driver.Rows, error) {
	return s.of.query(ctx, s.isControl, func(ctx context.Context) (driver.Rows, error) {
		return s.queryWrapped(ctx, values)
	})
}

func (s *statement) queryWrapped(ctx context.Context, values []driver.NamedValue) (driver.Rows, error) {
	if able, ok := s.wrapped.(driver.StmtQueryContext); ok {
		return able.QueryContext(ctx, values)
	}
	plain, err := unnamed(ctx, values)
	if err != nil {
		return nil, err
	}
	return s.wrapped.Query(plain)
}

func (s *statement) ExecContext(ctx context.Context, values []driver.NamedValue) (driver.Result, error) {
	return s.of.exec(ctx, s.isControl, func(ctx context.Context) (driver.Result, error) {
		if able, ok := s.wrapped.(driver.StmtExecContext); ok {
			return able.ExecContext(ctx, values)
		}
		plain, err := unnamed(ctx, values)
		if err != nil {
			return nil, err
		}
		return s.wrapped.Exec(plain)
	})
}

// rows hold their lease until they are closed. database/sql closes them as soon as there are no
// more rows.
type rows struct {
	driver.Rows
	use *Use
}

func (r *rows) Next(row []driver.Value) error { return r.use.mapError(r.Rows.Next(row)) }

func (r *rows) Close() error { return r.use.End(r.Rows.Close()) }

func (r *rows) HasNextResultSet() bool {
	able, ok := r.Rows.(driver.RowsNextResultSet)
	return ok && able.HasNextResultSet()
}

func (r *rows) NextResultSet() error {
	if able, ok := r.Rows.(driver.RowsNextResultSet); ok {
		return r.use.mapError(able.NextResultSet())
	}
	return io.EOF
}

func (r *rows) ColumnTypeScanType(index int) reflect.Type {
	if able, ok := r.Rows.(driver.RowsColumnTypeScanType); ok {
		return able.ColumnTypeScanType(index)
	}
	return reflect.TypeOf((*any)(nil)).Elem()
}

func (r *rows) ColumnTypeDatabaseTypeName(index int) string {
	if able, ok := r.Rows.(driver.RowsColumnTypeDatabaseTypeName); ok {
		return able.ColumnTypeDatabaseTypeName(index)
	}
	return ""
}

func (r *rows) ColumnTypeLength(index int) (length int64, ok bool) {
	if able, ok := r.Rows.(driver.RowsColumnTypeLength); ok {
		return able.ColumnTypeLength(index)
	}
	return 0, false
}

func (r *rows) ColumnTypeNullable(index int) (nullable, ok bool) {
	if able, ok := r.Rows.(driver.RowsColumnTypeNullable); ok {
		return able.ColumnTypeNullable(index)
	}
	return false, false
}

func (r *rows) ColumnTypePrecisionScale(index int) (precision, scale int64, ok bool) {
	if able, ok := r.Rows.(driver.RowsColumnTypePrecisionScale); ok {
		return able.ColumnTypePrecisionScale(index)
	}
	return 0, 0, false
}
