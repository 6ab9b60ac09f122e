package dev.bywash.spring;

import com.zaxxer.hikari.HikariDataSource;
import dev.bywash.LeasedDriver;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.util.ClassUtils;

/**
 * Puts {@link LeasedDriver} around the driver of each pool of HikariCP, before the pool makes its
 * first connection. The driver lies below the pool, because there a connection keeps its number. So
 * the type of the bean stays, and so do the pool's settings and metrics.
 */
final class LeasedPools implements BeanPostProcessor, SmartInitializingSingleton {
    private static final Log LOG = LogFactory.getLog(LeasedPools.class);
    private static final String LEASED = "jdbc:bywash:";
    private static final String BY_HAND =
            ": begin its URL with jdbc:bywash:NAME:, and set its driver to dev.bywash.LeasedDriver";
    private static final String OTHER = "it is not a pool of HikariCP" + BY_HAND;
    private static final boolean HAS_HIKARI = ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", null);
    /** Matches the scheme, host and port of a URL. A URL without a host means the local one. */
    private static final Pattern SERVER =
            Pattern.compile("jdbc:(\\w+):(?://(?:[^/?@]*@)?([^/?]*?)(?::(\\d*))?(?=[/?]|$))?.*", Pattern.DOTALL);

    private final BywashProperties properties;
    /** The server of each database. The numbers of connections on two servers can be equal. */
    private final Map<String, String> servers = new HashMap<>();
    /** The keys of {@code bywash.databases} that have matched no pool yet. */
    private final Set<String> unmatched;

    LeasedPools(BywashProperties properties) {
        this.properties = properties;
        this.unmatched = new HashSet<>(properties.databases().keySet());
    }

    /** Leases the connections of a pool. Other beans have set its properties by now, such as its URL. */
    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        if (!(bean instanceof DataSource)) {
            return bean;
        }
        unmatched.remove(name);
        String database = properties.databases().getOrDefault(name, properties.database());
        if (database == null || database.isEmpty()) {
            return bean;
        }
        String obstacle = HAS_HIKARI ? new HikariPools().lease(bean, name, database) : OTHER;
        if (obstacle != null) {
            LOG.warn("bywash does not lease the connections of " + name + ": " + obstacle);
        }
        return bean;
    }

    /** Warns about settings for pools that do not exist. */
    @Override
    public void afterSingletonsInstantiated() {
        for (String name : unmatched) {
            LOG.warn("bywash.databases." + name + " has no effect so far: no pool has this bean name");
        }
    }

    /** Leases the pools of HikariCP. It is a class of its own, because HikariCP is optional. */
    private final class HikariPools {
        /** Wraps a pool's driver. Returns the reason if the connections cannot be leased. */
        String lease(Object bean, String name, String database) {
            if (!(bean instanceof HikariDataSource pool)) {
                return OTHER;
            }
            String url = pool.getJdbcUrl();
            if (url != null && url.startsWith(LEASED)) {
                LOG.info("bywash leases the connections of " + name + " under the name in their URL");
                return null;
            }
            if (url == null || !LeasedDriver.canLease(url, pool.getDataSourceProperties())) {
                return "its URL is not that of one server of PostgreSQL, MariaDB or MySQL";
            }
            String leased = LEASED + database + ":" + url.substring("jdbc:".length());
            if (!new LeasedDriver().acceptsURL(leased)) {
                return "the name of the database must have 1 to 32 letters, digits, _ or -, and not be self";
            }
            if (pool.isRunning()) {
                return "it has connections already" + BY_HAND;
            }
            String server = serverOf(url);
            String first = servers.putIfAbsent(database, server);
            if (first != null && !first.equals(server)) {
                return "it connects to " + server + ", and another pool of the database " + database + " to " + first
                        + ": give it a name of its own in bywash.databases";
            }
            LOG.info("bywash leases the connections of " + name + " under the name " + database);
            pool.setJdbcUrl(leased);
            pool.setDriverClassName(LeasedDriver.class.getName());
            return null;
        }
    }

    /** Returns the scheme, host and port of a URL, such as {@code postgresql://127.0.0.1:5432}. */
    private static String serverOf(String url) {
        Matcher parts = SERVER.matcher(url);
        if (!parts.matches()) {
            return url;
        }
        String host = parts.group(2) == null || parts.group(2).isEmpty() ? "localhost" : parts.group(2);
        String defaultPort = parts.group(1).equals("postgresql") ? "5432" : "3306";
        String port = parts.group(3) == null || parts.group(3).isEmpty() ? defaultPort : parts.group(3);
        return parts.group(1) + "://" + host.toLowerCase(Locale.ROOT) + ":" + port;
    }
}
