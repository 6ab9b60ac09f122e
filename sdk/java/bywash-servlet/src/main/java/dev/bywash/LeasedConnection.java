package dev.bywash;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

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
        switch (method.getName()) {
            case "commit", "rollback", "setAutoCommit", "close", "abort" -> lease.release();
            default -> { }
        }
        Object result = call(wrapped, method, values);
        if (result instanceof Statement statement) {
            Class<?> kind = method.getReturnType();
            String prepared = textOf(values);
            return proxy(kind, (it, one, given) -> ofStatement(self, it, statement, prepared, one, given));
        }
        return result;
    }

    /** Returns the first argument of a method if it is a text; otherwise null. */
    private static String textOf(Object[] values) {
        return values != null && values.length > 0 && values[0] instanceof String text ? text : null;
    }

    private Object ofStatement(
            Object connection, Object self, Statement statement, String prepared, Method method, Object[] values)
            throws Throwable {
        if (method.getName().equals("getConnection")) {
            return connection;
        }
        if (!method.getName().startsWith("execute")) {
            if (method.getName().equals("close")) {
                // Closing the statement closes its rows without a further call.
                lease.release();
            }
            return call(statement, method, values);
        }
        String text = textOf(values);
        if (Control.isControl(text == null ? prepared : text)) {
            lease.release();
            return call(statement, method, values);
        }
        Lease.Grant grant = lease.begin();
        boolean isKept = false;
        try {
            Object result = call(statement, method, values);
            if (grant != null && result instanceof ResultSet rows) {
                isKept = true;
                return rows(rows, self, grant);
            }
            return result;
        } catch (SQLException error) {
            throw lease.explain(grant, error);
        } finally {
            if (!isKept) {
                lease.end(grant);
            }
        }
    }

    /**
     * Wraps a result set so that it holds the lease until all its rows are read, or until it is
     * closed.
     */
    private ResultSet rows(ResultSet rows, Object statement, Lease.Grant grant) {
        boolean[] isOpen = {true};
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
                throw lease.explain(grant, error);
            } finally {
                if (isOver && isOpen[0]) {
                    isOpen[0] = false;
                    lease.end(grant);
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
