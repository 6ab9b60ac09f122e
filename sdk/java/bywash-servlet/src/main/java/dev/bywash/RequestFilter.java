package dev.bywash;

import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.FilterConfig;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.ServletResponse;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.Collections;
import java.util.List;

/**
 * Gives each request a {@link Token}, with the name in its header field {@code bywash-request}, or
 * else a new one. If a request is over and its handler throws an exception, the filter answers 504.
 * Map it before all other filters, with the dispatcher types REQUEST and ASYNC.
 *
 * <p>Clients that do not pass a gateway could give a request the name of another one, and both would
 * be stopped together. If clients can reach the server in this way, set the parameter {@code
 * trustNames} to false.
 */
public final class RequestFilter implements Filter {
    private static final String ATTRIBUTE = Token.class.getName();
    private boolean trustsNames;

    /** Makes a filter for web.xml, which accepts names unless {@code trustNames} is false. */
    public RequestFilter() {
        this(true);
    }

    /**
     * Makes a filter.
     *
     * @param trustNames whether requests may bring their names along
     */
    public RequestFilter(boolean trustNames) {
        this.trustsNames = trustNames;
    }

    @Override
    public void init(FilterConfig config) {
        String trustNames = config.getInitParameter("trustNames");
        if (trustNames != null) {
            trustsNames = Boolean.parseBoolean(trustNames);
        }
    }

    @Override
    public void doFilter(ServletRequest request, ServletResponse response, FilterChain chain)
            throws IOException, ServletException {
        HttpServletRequest http = (HttpServletRequest) request;
        Token token = (Token) http.getAttribute(ATTRIBUTE);
        if (token == null) {
            token = tokenOf(http);
            http.setAttribute(ATTRIBUTE, token);
        } else if (token == Token.current()) {
            // Another filter of this class stands around this one.
            chain.doFilter(request, response);
            return;
        }
        Token before = Token.enter(token);
        try {
            chain.doFilter(request, response);
        } catch (IOException | ServletException | RuntimeException error) {
            if (token.reason() == null || response.isCommitted()) {
                throw error;
            }
            Answer.send(token.reason(), http, (HttpServletResponse) response);
            if (http.isAsyncStarted()) {
                http.getAsyncContext().complete();
            }
        } finally {
            Token.enter(before);
            if (http.isAsyncStarted()) {
                http.getAsyncContext().addListener(new Continued(token));
            } else {
                token.end();
            }
        }
    }

    private Token tokenOf(HttpServletRequest request) {
        List<String> names = Collections.list(request.getHeaders("bywash-request"));
        return trustsNames && names.size() == 1 && Token.isName(names.get(0)) ? new Token(names.get(0)) : new Token();
    }

    /** Ends a request that goes on after its first thread. */
    private record Continued(Token token) implements AsyncListener {
        @Override
        public void onComplete(AsyncEvent event) {
            token.end();
        }

        @Override
        public void onTimeout(AsyncEvent event) {
            token.stop(Reason.DEADLINE);
        }

        @Override
        public void onError(AsyncEvent event) {
            if (event.getThrowable() instanceof IOException) {
                token.stop(Reason.CLIENT_LEFT);
            }
        }

        @Override
        public void onStartAsync(AsyncEvent event) {
            // The filter adds a listener after each dispatch.
        }
    }
}
