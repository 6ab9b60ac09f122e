/**
 * Ends the database queries of requests whose clients have left, with the stop daemon ({@code
 * bywash stopd}). {@link dev.bywash.RequestFilter} names each request, and {@link
 * dev.bywash.LeasedDriver} tells the daemon which request uses which connection.
 */
package dev.bywash;
