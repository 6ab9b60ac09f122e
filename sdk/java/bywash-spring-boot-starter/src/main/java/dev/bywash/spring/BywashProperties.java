package dev.bywash.spring;

import java.util.Map;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.bind.DefaultValue;

/**
 * The properties {@code bywash.*}.
 *
 * @param enabled Whether requests are named and connections leased.
 * @param trustNames Whether requests may bring their names along, in the header field
 *     bywash-request. Set it to false if clients reach the application without passing a gateway.
 * @param database Name of the database in the configuration of bywash stopd, for each pool that
 *     bywash.databases does not name.
 * @param databases Names of databases in the configuration of bywash stopd, by the bean names of
 *     their pools.
 */
@ConfigurationProperties("bywash")
public record BywashProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("true") boolean trustNames,
        String database,
        @DefaultValue Map<String, String> databases) {}
