package dev.bywash;

import java.sql.Connection;
import java.sql.Driver;
import java.sql.DriverManager;
import java.sql.DriverPropertyInfo;
import java.sql.SQLException;
import java.util.Properties;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A JDBC driver that wraps another one. The URL {@code jdbc:bywash:NAME:REST} means {@code
 * jdbc:REST}, leased under NAME. NAME is the database's name in the configuration of {@code bywash
 * stopd} ({@code [database.NAME]}). The driver works below any pool, because a connection keeps its
 * number, and its lease lasts for one query.
 */
public final class LeasedDriver implements Driver {
    private static final Pattern URL = Pattern.compile("jdbc:bywash:(?!self:)([A-Za-z0-9_-]{1,32}):(.*)", Pattern.DOTALL);
    /**
     * Matches URLs of one server, to which a connection is made once. A driver that chooses among
     * servers or reconnects by itself would change the number of a connection unnoticed. Then the
     * daemon would cancel the query of another client.
     */
    private static final Pattern ONE_SERVER = Pattern.compile(
            "(postgresql|mariadb|mysql):(?://[^/?,]*+(?:[/?].*)?|(?!//)[^:,?]*(?:[?].*)?)", Pattern.DOTALL);
    /** Matches settings that let a driver reconnect, or that name a server outside of the URL's first part. */
    private static final Pattern REFUSED = Pattern.compile(
            "(?:^|[?&(,])\\s*(?:autoReconnect(?:ForPools)?\\s*=(?!\\s*(?:false|no)\\b)|(?:PGHOST|PGPORT|service)\\s*=)",
            Pattern.CASE_INSENSITIVE);

    static {
        try {
            DriverManager.registerDriver(new LeasedDriver());
        } catch (SQLException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    /** Makes a driver. */
    public LeasedDriver() {}

    /**
     * Returns whether connections for a URL of another driver can be leased: those to one server of
     * PostgreSQL, MariaDB or MySQL.
     *
     * @param url the URL, such as {@code jdbc:postgresql://127.0.0.1/shop}
     * @param properties the settings of the other driver
     * @return whether the driver can wrap the other one
     */
    public static boolean canLease(String url, Properties properties) {
        return url.startsWith("jdbc:") && ONE_SERVER.matcher(url.substring("jdbc:".length())).matches()
                && !REFUSED.matcher(url).find()
                && properties.stringPropertyNames().stream()
                        .noneMatch(name -> REFUSED.matcher(name + "=" + properties.getProperty(name)).find());
    }

    @Override
    public Connection connect(String url, Properties properties) throws SQLException {
        Matcher parts = URL.matcher(url);
        if (!parts.matches()) {
            return null;
        }
        String wrapped = "jdbc:" + parts.group(2);
        if (!canLease(wrapped, properties)) {
            throw new SQLException("bywash: only connections to one server of PostgreSQL, MariaDB or MySQL, which the URL "
                    + "names, without autoReconnect, can be leased: take jdbc:bywash:" + parts.group(1) + ": out of the URL");
        }
        Connection connection = DriverManager.getDriver(wrapped).connect(wrapped, properties);
        String question = wrapped.startsWith("jdbc:postgresql:") ? "SELECT pg_backend_pid()" : "SELECT CONNECTION_ID()";
        try (var statement = connection.createStatement(); var row = statement.executeQuery(question)) {
            row.next();
            return new LeasedConnection(connection, StopClient.get(), parts.group(1), row.getLong(1)).proxy();
        } catch (SQLException | RuntimeException error) {
            connection.close();
            throw error;
        }
    }

    @Override
    public boolean acceptsURL(String url) {
        return URL.matcher(url).matches();
    }

    @Override
    public DriverPropertyInfo[] getPropertyInfo(String url, Properties properties) {
        return new DriverPropertyInfo[0];
    }

    @Override
    public int getMajorVersion() {
        return 0;
    }

    @Override
    public int getMinorVersion() {
        return 1;
    }

    @Override
    public boolean jdbcCompliant() {
        return false;
    }

    @Override
    public Logger getParentLogger() {
        return Logger.getLogger("dev.bywash");
    }
}
