/**
 * Auto-configuration for Spring Boot: an application needs only the dependency and the property
 * {@code bywash.database}.
 */
package dev.bywash.spring;
