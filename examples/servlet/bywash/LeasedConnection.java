package bywash;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.SQLRecoverableException;
import java.sql.Statement;
import java.util.Optional;
import java.util.regex.Pattern;

/**
 * A database connection that holds a lease while a query works for a request: from before the query
 * begins until its rows are read or closed. If it is uncertain whether a lease has ended, the
 * connection is aborted, and its pool discards it.
 *
 * <p>Rows from getResultSet hold no lease while they are read.
 */
final class LeasedConnection implements InvocationHandler {
    private static final String BLANK =
            "(?:\\s++|--[^\\n]*+|#[^\\n]*+|/\\*(?!M?!)[^*]*+(?:\\*(?!/)[^*]*+)*+\\*/)*+";
    /**
     * Matches statements that only begin, end or divide a transaction, or release locks. Such
     * statements are not leased, and reach the database even if their request is over. Otherwise
     * the pool would lend a connection that is still in a transaction.
     */
    private static final Pattern CONTROL = Pattern.compile(
            BLANK + "(?:BEGIN" + BLANK + "|(?:COMMIT|END|ROLLBACK|ABORT|SAVEPOINT|RELEASE|START" + BLANK + "TRANSACTION|UNLOCK"
                    + BLANK + "TABLES?|BEGIN" + BLANK + "(?:WORK|TRANSACTION|ISOLATION|READ))\\b[^;]*+);?\\s*+",
            Pattern.CASE_INSENSITIVE);

    private final Connection wrapped;
    private final String words;
    /**
     * The conversation in which the current lease was made, and its request; null if there is no
     * lease.
     */
    private StopClient.Conversation talk;
    private String request;
    private boolean isUnanswered;
    /** The number of running queries and open result sets under the current lease. */
    private int holds;

    LeasedConnection(Connection wrapped, String database, long number) {
        this.wrapped = wrapped;
        this.words = " " + database + " " + number;
    }

    Connection proxy() {
        return proxy(Connection.class, this);
    }

    private static <T> T proxy(Class<T> kind, InvocationHandler handler) {
        return kind.cast(Proxy.newProxyInstance(LeasedConnection.class.getClassLoader(), new Class<?>[] {kind}, handler));
    }

    /**
     * Calls a method of the connection. The statements that it returns are wrapped. Before a call
     * that ends a transaction, the lease is released.
     */
    @Override
    public Object invoke(Object self, Method method, Object[] values) throws Throwable {
        switch (method.getName()) {
            case "commit", "rollback", "setAutoCommit", "close", "abort" -> release();
            default -> { }
        }
        Object result = call(wrapped, method, values);
        if (result instanceof Statement statement) {
            Class<?> kind = method.getReturnType();
            String prepared = textOf(values);
            return proxy(kind, (it, one, given) -> ofStatement(self, statement, prepared, one, given));
        }
        return result;
    }

    /** Returns the first argument of a method if it is a text; otherwise null. */
    private static String textOf(Object[] values) {
        return values != null && values.length > 0 && values[0] instanceof String text ? text : null;
    }

    static boolean isControl(String text) {
        return text != null && CONTROL.matcher(text).matches();
    }

    private Object ofStatement(Object connection, Statement statement, String prepared, Method method, Object[] values)
            throws Throwable {
        if (method.getName().equals("getConnection")) {
            return connection;
        }
        if (!method.getName().startsWith("execute")) {
            if (method.getName().equals("close")) {
                // Closing the statement closes its rows without a further call.
                release();
            }
            return call(statement, method, values);
        }
        String text = textOf(values);
        if (isControl(text == null ? prepared : text)) {
            release();
            return call(statement, method, values);
        }
        Object lease = begin();
        try {
            Object result = call(statement, method, values);
            if (lease != null && result instanceof ResultSet rows) {
                Object kept = lease;
                lease = null;
                return rows(rows, kept);
            }
            return result;
        } finally {
            end(lease);
        }
    }

    /**
     * Wraps a result set so that it holds the lease until all its rows are read, or until it is
     * closed.
     */
    private ResultSet rows(ResultSet rows, Object lease) {
        boolean[] isOpen = {true};
        return proxy(ResultSet.class, (self, method, values) -> {
            boolean isOver = method.getName().equals("close");
            try {
                Object result = call(rows, method, values);
                isOver |= method.getName().equals("next") && Boolean.FALSE.equals(result);
                return result;
            } finally {
                if (isOver && isOpen[0]) {
                    isOpen[0] = false;
                    end(lease);
                }
            }
        });
    }

    /**
     * Leases the connection for the request of this thread. Returns null if the thread has no
     * request or there is no daemon.
     */
    private synchronized Object begin() throws SQLException {
        String name = RequestFilter.name();
        if (talk != null && !request.equals(name)) {
            release();
        }
        if (name == null) {
            return null;
        }
        if (talk != null) {
            holds++;
            return talk;
        }
        StopClient.Conversation with = StopClient.get().conversation();
        if (with == null) {
            return null;
        }
        Optional<String> answer = with.ask("LEASE " + name + words);
        // If the daemon does not answer, it may still have received the line. Then the query runs,
        // and its connection is aborted afterwards.
        if (answer.isEmpty() || answer.get().equals("OK")) {
            talk = with;
            request = name;
            isUnanswered = answer.isEmpty();
            holds = 1;
        } else if (answer.get().startsWith("STOPPED ")) {
            throw new StoppedException(answer.get().substring("STOPPED ".length()));
        } else if (answer.get().startsWith("ERR taken")) {
            wrapped.abort(Runnable::run);
            throw new SQLRecoverableException("bywash: another client of the stop daemon has leased the connection", "08003");
        }
        return talk;
    }

    private synchronized void end(Object lease) throws SQLException {
        if (lease != null && lease == talk) {
            holds--;
            if (holds == 0) {
                release();
            }
        }
    }

    private synchronized void release() throws SQLException {
        if (talk == null) {
            return;
        }
        String answer = talk.ask("RELEASE " + request + words).orElse("");
        talk = null;
        if (isUnanswered || !(answer.equals("OK") || answer.startsWith("ERR not_leased"))) {
            // A cancellation that was aimed at this lease may still be under way.
            wrapped.abort(Runnable::run);
        }
    }

    private static Object call(Object on, Method method, Object[] values) throws Throwable {
        try {
            return method.invoke(on, values);
        } catch (InvocationTargetException error) {
            throw error.getCause();
        }
    }
}
