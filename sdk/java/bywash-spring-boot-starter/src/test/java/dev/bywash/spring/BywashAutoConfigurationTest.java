package dev.bywash.spring;

import static org.assertj.core.api.Assertions.assertThat;

import com.zaxxer.hikari.HikariDataSource;
import dev.bywash.LeasedDriver;
import dev.bywash.RequestFilter;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.jdbc.DataSourceAutoConfiguration;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.jdbc.datasource.DriverManagerDataSource;

/** Tests which pools are leased. No pool makes a connection here. */
@ExtendWith(OutputCaptureExtension.class)
final class BywashAutoConfigurationTest {
    private static final String URL = "jdbc:postgresql://127.0.0.1/shop";

    private final WebApplicationContextRunner runner = new WebApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(DataSourceAutoConfiguration.class, BywashAutoConfiguration.class));

    @Test
    void onePropertyLeasesThePoolThatSpringMakes() {
        runner.withPropertyValues("spring.datasource.url=" + URL, "bywash.database=shop").run(context -> {
            var pool = context.getBean(HikariDataSource.class);
            assertThat(pool.getJdbcUrl()).isEqualTo("jdbc:bywash:shop:postgresql://127.0.0.1/shop");
            assertThat(pool.getDriverClassName()).isEqualTo(LeasedDriver.class.getName());
            var filter = context.getBean("bywashRequestFilter", FilterRegistrationBean.class);
            assertThat(filter.getFilter()).isInstanceOf(RequestFilter.class);
            assertThat(filter.getOrder()).isEqualTo(Ordered.HIGHEST_PRECEDENCE);
        });
    }

    @Test
    void withoutANameNoPoolIsLeased() {
        runner.withPropertyValues("spring.datasource.url=" + URL)
                .run(context -> assertThat(context.getBean(HikariDataSource.class).getJdbcUrl()).isEqualTo(URL));
    }

    @Test
    void nothingIsDoneIfItIsDisabled() {
        var off = runner.withPropertyValues("spring.datasource.url=" + URL, "bywash.database=shop", "bywash.enabled=false");
        off.run(context -> {
            assertThat(context.getBean(HikariDataSource.class).getJdbcUrl()).isEqualTo(URL);
            assertThat(context).doesNotHaveBean(FilterRegistrationBean.class);
        });
    }

    @Test
    void eachPoolHasTheNameOfItsDatabase() {
        runner.withUserConfiguration(Pools.class).withPropertyValues("bywash.databases.store=other").run(context -> {
            assertThat(context.getBean("store", HikariDataSource.class).getJdbcUrl())
                    .isEqualTo("jdbc:bywash:other:mariadb://127.0.0.1/store");
            assertThat(context.getBean("reports", HikariDataSource.class).getJdbcUrl()).isEqualTo(URL);
        });
    }

    @Test
    void aLogLineNamesAPoolThatCannotBeLeased(CapturedOutput output) {
        runner.withUserConfiguration(Pools.class).withPropertyValues("bywash.database=shop").run(context -> {
            assertThat(output).contains("bywash leases the connections of store under the name shop");
            assertThat(output).contains("bywash does not lease the connections of memory: its URL is not that of one server");
            assertThat(output).contains("bywash does not lease the connections of plain: it is not a pool of HikariCP");
            assertThat(context.getBean("named", HikariDataSource.class).getJdbcUrl()).startsWith("jdbc:bywash:mine:");
            assertThat(output).contains("bywash leases the connections of named under the name in their URL");
        });
        runner.withUserConfiguration(Pools.class).withPropertyValues("bywash.database=self").run(context ->
                assertThat(output).contains("does not lease the connections of store: the name of the database must have"));
    }

    @Test
    void poolsOfOneNameConnectToOneServer(CapturedOutput output) {
        runner.withUserConfiguration(Pools.class).withPropertyValues("bywash.database=shop").run(context -> {
            assertThat(context.getBean("store", HikariDataSource.class).getJdbcUrl()).startsWith("jdbc:bywash:shop:");
            assertThat(context.getBean("more", HikariDataSource.class).getJdbcUrl()).startsWith("jdbc:bywash:shop:");
            assertThat(context.getBean("reports", HikariDataSource.class).getJdbcUrl()).isEqualTo(URL);
            assertThat(output).contains("does not lease the connections of reports: it connects to "
                    + "postgresql://127.0.0.1:5432, and another pool of the database shop to mariadb://127.0.0.1:3306");
        });
    }

    @Test
    void aNameForAPoolThatDoesNotExistIsReported(CapturedOutput output) {
        runner.withUserConfiguration(Pools.class)
                .withPropertyValues("bywash.databases.store=other", "bywash.databases.stores=shop")
                .run(context -> {
                    assertThat(output).contains("bywash.databases.stores has no effect");
                    assertThat(output).doesNotContain("bywash.databases.store has no effect");
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class Pools {
        private static HikariDataSource pool(String url) {
            HikariDataSource pool = new HikariDataSource();
            pool.setJdbcUrl(url);
            return pool;
        }

        @Bean
        HikariDataSource store() {
            return pool("jdbc:mariadb://127.0.0.1/store");
        }

        @Bean
        HikariDataSource more() {
            return pool("jdbc:mariadb://127.0.0.1:3306/more?user=a");
        }

        @Bean
        HikariDataSource reports() {
            return pool(URL);
        }

        @Bean
        HikariDataSource memory() {
            return pool("jdbc:h2:mem:a");
        }

        @Bean
        HikariDataSource named() {
            return pool("jdbc:bywash:mine:postgresql://127.0.0.1/shop");
        }

        @Bean
        DriverManagerDataSource plain() {
            return new DriverManagerDataSource(URL);
        }
    }
}
