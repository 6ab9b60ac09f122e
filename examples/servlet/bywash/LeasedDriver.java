package bywash;

import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Properties;
import java.util.logging.Logger;

/**
 * A JDBC driver that wraps another one. The URL jdbc:bywash:NAME:REST means jdbc:REST, leased under
 * NAME. NAME is the database's name in the configuration of bywash stopd ([database.NAME]). The
 * driver works below any pool, because a connection keeps its number, and its lease lasts for one
 * query.
 */
public final class LeasedDriver implements Driver {
    private static final String PREFIX = "jdbc:bywash:";

    static {
        try {
            DriverManager.registerDriver(new LeasedDriver());
        } catch (SQLException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    @Override
    public Connection connect(String url, Properties properties) throws SQLException {
        if (!acceptsURL(url)) {
            return null;
        }
        String rest = url.substring(PREFIX.length());
        String name = rest.substring(0, rest.indexOf(':'));
        String wrapped = "jdbc:" + rest.substring(name.length() + 1);
        Connection connection = DriverManager.getDriver(wrapped).connect(wrapped, properties);
        boolean isPostgres = wrapped.startsWith("jdbc:postgresql:");
        String question = isPostgres ? "SELECT pg_backend_pid()" : "SELECT CONNECTION_ID()";
        try (var statement = connection.createStatement(); var row = statement.executeQuery(question)) {
            row.next();
            return new LeasedConnection(connection, name, row.getLong(1)).proxy();
        } catch (SQLException | RuntimeException error) {
            connection.close();
            throw error;
        }
    }

    @Override
    public boolean acceptsURL(String url) {
        return url.startsWith(PREFIX) && url.substring(PREFIX.length()).matches("[A-Za-z0-9_-]{1,32}:.*");
    }

    @Override
    public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) {
        return new DriverPropertyInfo[0];
    }

    @Override
    public int getMajorVersion() {
        return 1;
    }

    @Override
    public int getMinorVersion() {
        return 0;
    }

    @Override
    public boolean jdbcCompliant() {
        return false;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getLogger("bywash");
    }
}
