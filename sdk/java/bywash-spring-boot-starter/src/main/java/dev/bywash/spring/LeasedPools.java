package dev.bywash.spring;

import com.zaxxer.hikari.HikariDataSource;
import dev.bywash.LeasedDriver;
import javax.sql.DataSource;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.util.ClassUtils;

/**
 * Puts {@link LeasedDriver} around the driver of each pool of HikariCP, before the pool makes its
 * first connection. The driver lies below the pool, because there a connection keeps its number. So
 * the type of the bean stays, and so do the pool's settings and metrics.
 */
final class LeasedPools implements BeanPostProcessor {
    private static final Log LOG = LogFactory.getLog(LeasedPools.class);
    private static final String BY_HAND =
            ": begin its URL with jdbc:bywash:NAME:, and set its driver to dev.bywash.LeasedDriver";
    private static final String OTHER = "it is not a pool of HikariCP" + BY_HAND;
    private static final boolean HAS_HIKARI = ClassUtils.isPresent("com.zaxxer.hikari.HikariDataSource", null);

    private final BywashProperties properties;

    LeasedPools(BywashProperties properties) {
        this.properties = properties;
    }

    /** Other beans have set the properties of the pool by now, such as its URL. */
    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        String database = bean instanceof DataSource ? properties.databases().getOrDefault(name, properties.database()) : null;
        if (database == null || database.isEmpty()) {
            return bean;
        }
        String obstacle = HAS_HIKARI ? HikariPools.lease(bean, database) : OTHER;
        if (obstacle == null) {
            LOG.info("bywash leases the connections of " + name + " under the name " + database);
        } else {
            LOG.warn("bywash does not lease the connections of " + name + ": " + obstacle);
        }
        return bean;
    }

    /** A class of its own, because HikariCP is optional. */
    private static final class HikariPools {
        /** Returns the reason if the connections cannot be leased. */
        static String lease(Object bean, String database) {
            if (!(bean instanceof HikariDataSource pool)) {
                return OTHER;
            }
            String url = pool.getJdbcUrl();
            String leased = "jdbc:bywash:" + database + ":" + (url == null ? "" : url.replaceFirst("^jdbc:", ""));
            if (url != null && url.startsWith("jdbc:bywash:")) {
                return null;
            }
            if (!new LeasedDriver().acceptsURL(leased)) {
                return "the name of the database must have 1 to 32 letters, digits, _ or -, and not be self";
            }
            if (url == null || !LeasedDriver.canLease(url)) {
                return "its URL is not that of one server of PostgreSQL, MariaDB or MySQL";
            }
            if (pool.isRunning()) {
                return "it has connections already" + BY_HAND;
            }
            pool.setJdbcUrl(leased);
            pool.setDriverClassName(LeasedDriver.class.getName());
            return null;
        }
    }
}
