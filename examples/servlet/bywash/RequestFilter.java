package bywash;

import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import java.io.IOException;
import java.util.Collections;
import java.util.List;
import java.util.regex.Pattern;

/**
 * Keeps the name of each request (the field bywash-request) for the work on its thread. Map this
 * filter only if no client except the gateway can reach this server. Otherwise a client could give
 * its request the name of another one, and the two requests would be stopped together.
 *
 * <p>If a servlet continues on another thread (startAsync), it takes the name along: {@link #name}
 * on its thread, {@link #work} on the other.
 */
public final class RequestFilter implements Filter {
    private static final Pattern NAME = Pattern.compile("[A-Za-z0-9._:-]{1,128}");
    private static final ThreadLocal<String> CURRENT = new ThreadLocal<>();

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        String before = CURRENT.get();
        CURRENT.set(nameOf((HttpServletRequest) request));
        try {
            chain.doFilter(request, response);
        } finally {
            set(before);
        }
    }

    /** Returns the name of the request that this thread works for; null if it has none. */
    public static String name() {
        return CURRENT.get();
    }

    /** Runs work for the request {@code name} on a thread other than the request's own. */
    public static void work(String name, Runnable work) {
        String before = CURRENT.get();
        CURRENT.set(name);
        try {
            work.run();
        } finally {
            set(before);
        }
    }

    private static void set(String name) {
        if (name == null) {
            CURRENT.remove();
        } else {
            CURRENT.set(name);
        }
    }

    private static String nameOf(HttpServletRequest request) {
        List<String> values = Collections.list(request.getHeaders("bywash-request"));
        return values.size() == 1 && NAME.matcher(values.get(0)).matches() ? values.get(0) : null;
    }
}
