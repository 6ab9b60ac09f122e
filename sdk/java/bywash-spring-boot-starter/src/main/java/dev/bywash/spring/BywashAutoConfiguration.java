package dev.bywash.spring;

import dev.bywash.RequestFilter;
import jakarta.servlet.DispatcherType;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.core.Ordered;
import org.springframework.core.env.Environment;

/** Names each request, and leases the connections of pools. */
@AutoConfiguration
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnProperty(prefix = "bywash", name = "enabled", matchIfMissing = true)
@EnableConfigurationProperties(BywashProperties.class)
public class BywashAutoConfiguration {
    /** Makes the configuration. */
    public BywashAutoConfiguration() {}

    @Bean
    FilterRegistrationBean<RequestFilter> bywashRequestFilter(BywashProperties properties) {
        var filter = new FilterRegistrationBean<>(new RequestFilter(properties.trustNames()));
        filter.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
        filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
        return filter;
    }

    /** Leases pools. It reads its properties from the environment: a bean of them would be made too early. */
    @Bean
    static LeasedPools bywashLeasedPools(Environment environment) {
        return new LeasedPools(Binder.get(environment).bindOrCreate("bywash", BywashProperties.class));
    }
}
