package dev.bywash;

import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.Locale;

/** The answer to a request that is over. The contract is in sdk/README.md, "The answer". */
final class Answer {
    /** Seconds after which to retry a request that ran too long. */
    private static final int RETRY_AFTER = 10;

    private Answer() {}

    /** Sends the answer, without the header fields that the handler had set. */
    static void send(Reason reason, HttpServletRequest request, HttpServletResponse response) throws IOException {
        response.reset();
        response.setStatus(HttpServletResponse.SC_GATEWAY_TIMEOUT);
        response.setHeader("Cache-Control", "no-store");
        if (reason == Reason.RAN_TOO_LONG) {
            response.setIntHeader("Retry-After", RETRY_AFTER);
        }
        boolean isProblem = acceptsJson(request);
        response.setContentType(isProblem ? "application/problem+json" : "text/plain; charset=utf-8");
        byte[] body = (isProblem ? problem(reason) : title(reason) + " (" + reason + ")\n").getBytes(StandardCharsets.UTF_8);
        response.setContentLength(body.length);
        response.getOutputStream().write(body);
    }

    private static boolean acceptsJson(HttpServletRequest request) {
        return String.join(",", Collections.list(request.getHeaders("accept"))).toLowerCase(Locale.ROOT).contains("json");
    }

    private static String title(Reason reason) {
        return switch (reason) {
            case RAN_TOO_LONG -> "The site is very busy. Please try again in " + RETRY_AFTER + " s.";
            case DEADLINE -> "The deadline of this request has passed.";
            case CLIENT_LEFT -> "The client of this request has left.";
        };
    }

    private static String problem(Reason reason) {
        String kind = "about:blank";
        String retry = "";
        if (reason == Reason.RAN_TOO_LONG) {
            kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
            retry = ",\"retry-after\":" + RETRY_AFTER;
        }
        return "{\"type\":\"" + kind + "\",\"title\":\"" + title(reason) + "\",\"status\":504,\"reason\":\"" + reason + "\""
                + retry + "}";
    }
}
