package dev.bywash;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** A connection to no database, which records the calls of interest. */
final class FakeDatabase {
    final Connection leased;
    /** The SQL text of each statement that has begun. */
    final List<String> texts = new ArrayList<>();
    /** The number of calls of abort. */
    int aborted;
    boolean isAutoCommit = true;
    /** The error of the rows' next call; null if it has a row. */
    SQLException error;

    FakeDatabase(StopClient client, long number) {
        ResultSet rows = proxy(ResultSet.class, (self, method, values) -> switch (method.getName()) {
            case "next" -> {
                if (error != null) {
                    throw error;
                }
                yield true;
            }
            default -> null;
        });
        Statement statement = proxy(Statement.class, (self, method, values) -> {
            if (method.getName().startsWith("execute")) {
                texts.add((String) values[0]);
            }
            return switch (method.getName()) {
                case "executeQuery" -> rows;
                case "executeUpdate" -> 1;
                default -> null;
            };
        });
        Connection connection = proxy(Connection.class, (self, method, values) -> {
            if (method.getName().equals("abort")) {
                aborted++;
            }
            return switch (method.getName()) {
                case "createStatement" -> statement;
                case "getAutoCommit" -> isAutoCommit;
                case "isClosed" -> aborted > 0;
                default -> null;
            };
        });
        leased = new LeasedConnection(connection, client, "shop", number).proxy();
    }

    /** Runs a query of the request with this token; null for a query outside of a request. */
    ResultSet query(Token token) throws Exception {
        return token == null ? Token.unleased(this::query) : token.call(this::query);
    }

    private ResultSet query() throws SQLException {
        return leased.createStatement().executeQuery("SELECT 1");
    }

    private static <T> T proxy(Class<T> kind, InvocationHandler handler) {
        return kind.cast(Proxy.newProxyInstance(FakeDatabase.class.getClassLoader(), new Class<?>[] {kind}, handler));
    }
}
