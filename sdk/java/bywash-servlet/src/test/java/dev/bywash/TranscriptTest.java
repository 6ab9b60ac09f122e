package dev.bywash;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonNull;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** Runs the conversations of sdk/conformance with a fake stop daemon. */
final class TranscriptTest {
    /** Cases about things that this library does not have. */
    private static final Set<String> OMITTED = Set.of(
            // The filter names each request.
            "A request without a name leases nothing.",
            "A query of a request without a name that is over does not begin either.",
            // There are no classes and no deadlines, and so no time that ends a request or a lease.
            "A lease outlasts run_max, although the present threshold is run_min.",
            "A lease outlasts the request's own deadline.",
            "A deadline beyond run_max does not lengthen a lease.",
            "No time ends a request whose response has begun, so its lease has no end.",
            "A lease at the begin of a request lasts for its deadline and ten seconds.",
            "Without a daemon a query of a request that is over does not begin.",
            "A query of an overdue request does not begin, although no checkpoint was called.",
            "A request that the daemon stops is in p if it had run for run_min and its client has not left.",
            "The stop has the reason of the token.");

    @TestFactory
    Stream<DynamicTest> transcripts() throws IOException {
        List<JsonObject> all = new ArrayList<>(Vectors.read("leases.json", "transcripts"));
        all.addAll(Vectors.read("stops.json", "transcripts"));
        assertEquals(OMITTED.size(), all.stream().filter(TranscriptTest::isOmitted).count(), "an omitted case is unknown");
        return all.stream().filter(vector -> !isOmitted(vector)).map(vector ->
                DynamicTest.dynamicTest(vector.get("why").getAsString(), () -> new Transcript(vector).run()));
    }

    private static boolean isOmitted(JsonObject vector) {
        return OMITTED.contains(vector.get("why").getAsString());
    }

    private static final class Query {
        FakeDatabase database;
        ResultSet rows;
    }

    private static final class Transcript {
        private final JsonObject vector;
        private final Map<String, JsonElement> answers = new ConcurrentHashMap<>();
        private final Map<String, Token> tokens = new ConcurrentHashMap<>();
        private final Map<String, Query> queries = new HashMap<>();
        private final FakeDaemon daemon;
        private volatile JsonArray meanwhile;
        /** The failure of a step in the thread of the fake daemon; null if none has failed. */
        private volatile Throwable failure;

        Transcript(JsonObject vector) throws IOException {
            this.vector = vector;
            if (vector.has("answers")) {
                answers.putAll(vector.getAsJsonObject("answers").asMap());
            }
            // The time limit of the contract, if the daemon does not answer.
            boolean isSilent = answers.containsValue(JsonNull.INSTANCE);
            daemon = new FakeDaemon(isSilent ? Duration.ofMillis(100) : FakeDaemon.PATIENCE, this::reply);
        }

        void run() throws Exception {
            try (daemon) {
                if (vector.has("daemon")) {
                    daemon.close();
                }
                steps(vector.getAsJsonArray("steps"));
                assertNull(failure);
                for (Query query : queries.values()) {
                    if (query.rows != null) {
                        query.rows.close();
                    }
                }
            }
        }

        private String reply(String number, String words) {
            String[] parts = words.split(" ");
            if (parts[0].equals("LEASE") && meanwhile != null) {
                JsonArray step = meanwhile;
                meanwhile = null;
                try {
                    step(step);
                } catch (Throwable error) {
                    // The fake daemon would only end the conversation.
                    failure = error;
                }
            }
            JsonElement usual = answers.getOrDefault(parts[0], JsonParser.parseString("\"N OK\""));
            JsonElement answer = answers.getOrDefault(parts[0] + " " + parts[1], usual);
            return answer.isJsonNull() ? "" : answer.getAsString().replaceFirst("N", number) + "\n";
        }

        private void steps(JsonArray steps) throws Exception {
            for (JsonElement step : steps) {
                step(step.getAsJsonArray());
            }
        }

        private void step(JsonArray step) throws Exception {
            String first = step.size() > 1 && step.get(1).isJsonPrimitive() ? step.get(1).getAsString() : null;
            Token token = first == null ? null : tokens.get(first);
            switch (step.get(0).getAsString()) {
                case "begin" -> tokens.put(first, new Token(first));
                case "leave" -> token.stop(Reason.CLIENT_LEFT);
                case "end" -> token.end();
                case "go" -> { }
                case "reason" -> assertEquals(reason(step.get(2)), token.reason());
                case "checkpoint" -> ends(reason(step.get(2)), token::checkpoint);
                case "cancel_termination" -> ends(reason(step.get(2)), token::cancelTermination);
                case "lease" -> lease(first, Vectors.text(step.get(2)), step.get(3).getAsLong(), step.get(4).getAsString());
                case "release" -> release(first, step.get(2).getAsString());
                case "cancelled" -> cancelled(first, reason(step.get(2)));
                case "answers" -> answers.putAll(step.get(1).getAsJsonObject().asMap());
                case "meanwhile" -> meanwhile = step.get(1).getAsJsonArray();
                case "lines" -> lines(Vectors.texts(step.get(1)));
                case "stats" -> stats(step.get(1).getAsJsonObject());
                case "repeat" -> {
                    for (int turn = 0; turn < step.get(1).getAsInt(); turn++) {
                        steps(step.get(2).getAsJsonArray());
                    }
                }
                default -> throw new IllegalArgumentException("an unknown step: " + step);
            }
        }

        private static Reason reason(JsonElement word) {
            return word.isJsonNull() ? null : Reason.of(word.getAsString()).orElseThrow();
        }

        private static void ends(Reason reason, Runnable call) {
            try {
                call.run();
                assertNull(reason);
            } catch (TerminatedException error) {
                assertEquals(reason, error.reason);
            }
        }

        private void lease(String name, String token, long number, String outcome) throws Exception {
            Query query = new Query();
            queries.put(name, query);
            query.database = new FakeDatabase(daemon.client, number);
            Token request = token == null ? null : tokens.get(token);
            switch (outcome) {
                case "runs" -> query.rows = query.database.query(request);
                case "taken" -> {
                    SQLException error = assertThrows(SQLException.class, () -> query.database.query(request));
                    assertEquals("08003", error.getSQLState());
                }
                default -> {
                    StoppedException over = assertThrows(StoppedException.class, () -> query.database.query(request));
                    assertEquals(Reason.of(outcome).orElseThrow(), over.reason);
                }
            }
            assertEquals(outcome.equals("runs"), !query.database.texts.isEmpty());
            assertEquals(outcome.equals("taken") ? 1 : 0, query.database.aborted);
        }

        private void release(String name, String end) throws SQLException {
            Query query = queries.get(name);
            query.rows.close();
            query.rows = null;
            assertEquals(Map.of("kept", 0, "closed", 1).get(end), query.database.aborted);
        }

        private void cancelled(String name, Reason reason) throws SQLException {
            Query query = queries.get(name);
            query.database.error = new SQLException("canceling statement due to user request", "57014");
            SQLException error = assertThrows(SQLException.class, query.rows::next);
            if (reason == null) {
                assertSame(query.database.error, error);
            } else {
                assertEquals(reason, ((StoppedException) error).reason);
                assertSame(query.database.error, error.getCause());
            }
            release(name, "kept");
        }

        private void lines(List<String> expected) throws InterruptedException {
            for (String line : expected) {
                assertEquals(line, daemon.next());
            }
            assertTrue(!daemon.hasRead(), "the daemon has read more");
        }

        private void stats(JsonObject expected) throws InterruptedException {
            long end = System.nanoTime() + FakeDaemon.PATIENCE.toNanos();
            while (!counts(expected).equals(daemon.client.stats()) && System.nanoTime() - end < 0) {
                Thread.sleep(5);
            }
            assertEquals(counts(expected), daemon.client.stats());
        }

        /** Returns the counts that are expected: 0 for one that is not named, the present one for null. */
        private StopClient.Stats counts(JsonObject expected) {
            var counts = new JsonObject();
            JsonObject present = new com.google.gson.Gson().toJsonTree(daemon.client.stats()).getAsJsonObject();
            assertTrue(present.keySet().containsAll(expected.keySet()), "an unknown count");
            for (String name : present.keySet()) {
                JsonElement count = expected.has(name) ? expected.get(name) : JsonParser.parseString("0");
                counts.add(name, count.isJsonNull() ? present.get(name) : count);
            }
            return new com.google.gson.Gson().fromJson(counts, StopClient.Stats.class);
        }
    }
}
