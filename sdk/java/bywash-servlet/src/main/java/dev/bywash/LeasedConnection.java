package dev.bywash;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * A database connection that holds a lease while a query works for a request: from before the query
 * begins until its rows are read or closed.
 *
 * <p>Rows from getResultSet hold no lease while they are read.
 */
final class LeasedConnection implements InvocationHandler {
    private final Connection wrapped;
    private final Lease lease;

    LeasedConnection(Connection wrapped, StopClient client, String database, long number) {
        this.wrapped = wrapped;
        this.lease = new Lease(wrapped, client, database, number);
    }

    Connection proxy() {
        return proxy(Connection.class, this);
    }

    /** Makes a proxy, which equals itself as JDBC's objects do. */
    private static <T> T proxy(Class<T> kind, InvocationHandler handler) {
        InvocationHandler byIdentity = (self, method, values) ->
                method.getName().equals("equals") ? (Object) (self == values[0]) : handler.invoke(self, method, values);
        return kind.cast(Proxy.newProxyInstance(LeasedConnection.class.getClassLoader(), new Class<?>[] {kind}, byIdentity));
    }

    /**
     * Calls a method of the connection. The statements that it returns are wrapped. Before a call
     * that ends a transaction, the lease is released.
     */
    @Override
    public Object invoke(Object self, Method method, Object[] values) throws Throwable {
        String name = method.getName();
        // A rollback to a savepoint, which is an argument, does not end the transaction.
        boolean endsTransaction = Set.of("commit", "setAutoCommit").contains(name) || name.equals("rollback") && values == null;
        if (endsTransaction || Set.of("rollback", "close", "abort").contains(name)) {
            lease.release();
        }
        Object result = call(wrapped, method, values);
        if (endsTransaction) {
            lease.abortIfSpoiled();
        }
        return result instanceof Statement statement
                ? proxy(method.getReturnType(), new LeasedStatement(self, statement, textOf(values)))
                : result;
    }

    /** Returns the first argument of a method if it is a text; otherwise null. */
    private static String textOf(Object[] values) {
        return values != null && values.length > 0 && values[0] instanceof String text ? text : null;
    }

    /** A query's hold of the lease, which ends once. */
    private final class Hold {
        private final Lease.Grant grant;
        private final AtomicBoolean isOver = new AtomicBoolean();

        Hold(Lease.Grant grant) {
            this.grant = grant;
        }

        void end() throws SQLException {
            if (!isOver.getAndSet(true)) {
                lease.end(grant);
            }
        }
    }

    /** A statement, whose queries are leased. It has one open result set at a time. */
    private final class LeasedStatement implements InvocationHandler {
        private final Object connection;
        private final Statement statement;
        /** The text with which the statement was prepared; null for a plain statement. */
        private final String prepared;
        /** The hold of the last query, which may have open rows. */
        private final AtomicReference<Hold> last = new AtomicReference<>(new Hold(null));

        LeasedStatement(Object connection, Statement statement, String prepared) {
            this.connection = connection;
            this.statement = statement;
            this.prepared = prepared;
        }

        @Override
        public Object invoke(Object self, Method method, Object[] values) throws Throwable {
            String name = method.getName();
            if (name.equals("getConnection")) {
                return connection;
            }
            if (!name.startsWith("execute")) {
                if (name.equals("close")) {
                    // Closing the statement closes its rows without a further call.
                    last.get().end();
                }
                return call(statement, method, values);
            }
            String text = textOf(values);
            if (Control.isControl(text == null ? prepared : text)) {
                lease.release();
                return call(statement, method, values);
            }
            return query(self, method, values);
        }

        private Object query(Object self, Method method, Object[] values) throws Throwable {
            Hold hold = new Hold(lease.begin());
            boolean isKept = false;
            try {
                // A statement that runs again closes its earlier rows without a further call.
                last.getAndSet(hold).end();
                Object result = call(statement, method, values);
                if (hold.grant != null && result instanceof ResultSet rows) {
                    isKept = true;
                    return rows(rows, self, hold);
                }
                return result;
            } catch (SQLException error) {
                throw lease.errorOf(hold.grant, error);
            } finally {
                if (!isKept) {
                    hold.end();
                }
            }
        }
    }

    /**
     * Wraps a result set so that it holds the lease until all its rows are read, or until it is
     * closed.
     */
    private ResultSet rows(ResultSet rows, Object statement, Hold hold) {
        return proxy(ResultSet.class, (self, method, values) -> {
            if (method.getName().equals("getStatement")) {
                return statement;
            }
            boolean isOver = method.getName().equals("close");
            try {
                Object result = call(rows, method, values);
                isOver |= method.getName().equals("next") && Boolean.FALSE.equals(result);
                return result;
            } catch (SQLException error) {
                throw lease.errorOf(hold.grant, error);
            } finally {
                if (isOver) {
                    hold.end();
                }
            }
        });
    }

    private static Object call(Object on, Method method, Object[] values) throws Throwable {
        try {
            return method.invoke(on, values);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
