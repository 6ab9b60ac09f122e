package shop;

import dev.bywash.StopClient;
import dev.bywash.Token;
import jakarta.persistence.EntityManager;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.core.task.TaskDecorator;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.stereotype.Service;
import org.springframework.transaction.support.TransactionTemplate;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The application. Its queries are in the properties {@code number}, {@code long} and {@code short}. */
@SpringBootApplication
@EnableAsync
public class Application {
    public static void main(String[] arguments) {
        SpringApplication.run(Application.class, arguments);
    }

    /** Lets the work of {@code @Async} methods belong to the request that calls them. */
    @Bean
    TaskDecorator ofTheRequest() {
        return Token::wrap;
    }

    /** Work on another thread. */
    @Service
    static class Later {
        private final JdbcTemplate database;

        Later(JdbcTemplate database) {
            this.database = database;
        }

        @Async
        public CompletableFuture<List<String>> query(String text) {
            return CompletableFuture.completedFuture(database.queryForList(text, String.class));
        }
    }

    @RestController
    static class Queries {
        private final JdbcTemplate database;
        private final EntityManager entities;
        private final TransactionTemplate transaction;
        private final Later later;
        private final Set<String> running = ConcurrentHashMap.newKeySet();
        @Value("${number}")
        private String numberQuery;
        @Value("${long}")
        private String longQuery;
        @Value("${short}")
        private String shortQuery;

        Queries(JdbcTemplate database, EntityManager entities, TransactionTemplate transaction, Later later) {
            this.database = database;
            this.entities = entities;
            this.transaction = transaction;
            this.later = later;
        }

        @GetMapping("/number")
        String number() {
            return database.queryForObject(numberQuery, String.class);
        }

        @GetMapping("/short")
        List<String> shortQuery() {
            return database.queryForList(shortQuery, String.class);
        }

        @GetMapping("/long")
        List<String> longQuery() {
            String name = Token.current().request();
            running.add(name);
            try {
                return database.queryForList(longQuery, String.class);
            } finally {
                running.remove(name);
            }
        }

        /** Returns the names of the requests that run the long query. */
        @GetMapping("/names")
        String names() {
            return String.join(" ", running);
        }

        @GetMapping("/jpa")
        List<?> jpa() {
            return entities.createNativeQuery(longQuery).getResultList();
        }

        @GetMapping("/async")
        CompletableFuture<List<String>> async() {
            return later.query(longQuery);
        }

        /** Works in a transaction, whose rollback must reach the database although the request is over. */
        @GetMapping("/transaction")
        List<String> transaction() {
            return transaction.execute(status -> {
                database.queryForList(numberQuery, String.class);
                return database.queryForList(longQuery, String.class);
            });
        }

        @GetMapping("/stats")
        StopClient.Stats stats() {
            return StopClient.get().stats();
        }
    }
}
