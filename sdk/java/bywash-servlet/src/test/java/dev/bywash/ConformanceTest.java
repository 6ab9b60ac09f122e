package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;

/**
 * Runs the cases of sdk/conformance about names, statements and answers. Those about deadlines, the
 * controller and calls to other services are about things that this library does not have.
 */
final class ConformanceTest {
    @Test
    void aRequestHasTheNameThatItBringsAlongOrGetsOne() throws Exception {
        Set<String> made = new HashSet<>();
        Server.Handler handler = (request, response) -> response.getWriter().print(Token.current().request());
        try (Server trusts = new Server(handler, new RequestFilter());
                Server distrusts = new Server(handler, new RequestFilter(false))) {
            for (JsonObject vector : Vectors.read("names.json", "requests")) {
                List<String> values = Vectors.texts(vector.get("values"));
                String why = vector.get("why").getAsString();
                if (vector.has("in_memory")) {
                    assertFalse(Token.isName(values.get(0)), why);
                    continue;
                }
                Server server = vector.has("trusts_names") ? distrusts : trusts;
                String found = server.ask("GET", "/", "bywash-request", values).body();
                if (vector.get("name").isJsonNull()) {
                    assertTrue(found.matches("[0-9a-f]{16}") && made.add(found), why + " " + found);
                } else {
                    assertEquals(vector.get("name").getAsString(), found, why);
                }
            }
        }
        assertTrue(made.size() > 5);
    }

    @Test
    void aDriverAcceptsTheNamesOfDatabases() throws Exception {
        for (JsonObject vector : Vectors.read("names.json", "databases")) {
            String url = "jdbc:bywash:" + vector.get("name").getAsString() + ":postgresql://127.0.0.1/shop";
            assertEquals(vector.get("is_valid").getAsBoolean(), new LeasedDriver().acceptsURL(url), url);
        }
    }

    @Test
    void aTextThatOnlyControlsATransactionIsKnown() throws Exception {
        for (JsonObject vector : Vectors.read("statements.json", "statements")) {
            String text = vector.get("text").getAsString();
            assertEquals(vector.get("is_control").getAsBoolean(), Control.isControl(text), text);
        }
        // Texts whose recognition must not take long.
        assertTimeoutPreemptively(FakeDaemon.PATIENCE, () -> {
            assertFalse(Control.isControl("/*" + "* /".repeat(100_000) + " COMMIT"));
            assertFalse(Control.isControl(" ".repeat(100_000) + "/**/".repeat(100_000)));
            assertFalse(Control.isControl(";".repeat(100_000)));
        });
    }

    @Test
    void aRequestThatIsOverIsAnsweredAsItsClientAccepts() throws Exception {
        Server.Handler handler = (request, response) -> {
            response.setHeader("x-handler", "must not stay");
            Token.current().stop(Reason.of(request.getRequestURI().substring(1)).orElseThrow());
            Token.current().checkpoint();
        };
        int count = 0;
        try (Server server = new Server(handler, new RequestFilter())) {
            for (JsonObject vector : Vectors.read("answers.json", "answers")) {
                // The filter has no classes, and so only the default.
                if (vector.get("retry_after_ms").getAsInt() == 10_000) {
                    answers(server, vector);
                    count++;
                }
            }
        }
        assertTrue(count > 10);
    }

    private static void answers(Server server, JsonObject vector) throws Exception {
        String why = vector.get("why").getAsString();
        String path = "/" + vector.get("reason").getAsString();
        List<String> accept = Vectors.texts(vector.get("accept"));
        Server.Answer get = server.ask("GET", path, "accept", accept);
        Server.Answer answer = server.ask(vector.get("method").getAsString(), path, "accept", accept);
        Map<String, String> head = new TreeMap<>();
        for (var field : vector.getAsJsonObject("fields").entrySet()) {
            head.put(field.getKey(), field.getValue().getAsString());
        }
        head.put("content-length", String.valueOf(get.body().length()));
        // Tomcat leaves out the blank.
        head.computeIfPresent("content-type", (key, value) -> value.replace("; ", ";"));
        Map<String, String> found = new TreeMap<>(answer.head());
        found.keySet().removeAll(Set.of("date", "connection"));
        assertEquals(vector.get("status").getAsInt(), answer.status(), why);
        assertEquals(head, found, why);
        JsonElement problem = vector.get("problem");
        if (problem == null) {
            assertEquals(vector.get("text").getAsString(), get.body(), why);
        } else {
            assertEquals(problem, JsonParser.parseString(get.body()), why);
        }
        assertEquals(vector.get("method").getAsString().equals("HEAD") ? "" : get.body(), answer.body(), why);
    }
}
