//! Tests of requests whose statements are cancelled in the database.

use bywash_bookstore::Service;

use crate::databases::each_server_alone;
use crate::site::{Site, named, wait_for};

#[test]
fn a_cancelled_query_is_answered_503_and_its_connection_serves_the_next_request() {
    each_server_alone(|database| {
        let site = Site::narrow(database);
        let mut direct = database.connect_directly();
        direct.hold();
        let request = format!("cancel-{}", site.bookstore.address().port());
        let pending = site.client().send("GET", "/search?q=harbour", &named(&request), "");
        let connection = wait_for(|| direct.running(&request).pop().ok_or(format!("{database:?}")));
        let next = format!("next-{}", site.bookstore.address().port());
        let waiting = site.client().send("GET", "/search?q=harbour", &named(&next), "");
        site.wait_until(|stats| stats.queue_length == 1);
        direct.cancel(connection);
        let reply = pending.reply();
        assert_eq!(reply.status, 503, "{database:?}");
        assert!(reply.body.contains("stopped in the database"), "{}", reply.body);

        // The same connection runs the next request, and the request of another session is not
        // affected.
        let again = wait_for(|| direct.running(&next).pop().ok_or(format!("{database:?}")));
        assert_eq!(again, connection, "{database:?}");
        direct.release();
        assert_eq!(waiting.reply().status, 200, "{database:?}");
        let search = site.wait_until_settled().service(Service::Search);
        assert_eq!((search.cancelled, search.served, search.failed), (1, 1, 0), "{database:?}");
    });
}

#[test]
fn an_order_that_is_cancelled_is_not_placed_and_can_be_placed_again() {
    each_server_alone(|database| {
        let site = Site::narrow(database);
        let mut client = site.client();
        client.post("/cart", "id=7");
        let sid = client.sid.clone().unwrap();
        let mut direct = database.connect_directly();
        // Lock the session's row, which the first statement of the order needs.
        direct.execute("BEGIN");
        direct.execute(&format!("UPDATE sessions SET changes = changes + 1 WHERE sid = '{sid}'"));
        let request = format!("order-{}", site.bookstore.address().port());
        let pending = client.send("POST", "/buy", &named(&request), "");
        let connection = wait_for(|| direct.running(&request).pop().ok_or(format!("{database:?}")));
        direct.cancel(connection);
        assert_eq!(pending.reply().status, 503, "{database:?}");
        direct.execute("COMMIT");
        let select = format!("select count(*) from orders where sid = '{sid}'");
        assert_eq!(direct.query(&select), [0], "{database:?}");
        assert_eq!(client.post("/buy", "").status, 200, "{database:?}");
        assert_eq!(direct.query(&select), [1], "{database:?}");
    });
}

#[test]
fn a_connection_that_is_killed_costs_one_request_at_most() {
    each_server_alone(|database| {
        let site = Site::narrow(database);
        let mut direct = database.connect_directly();
        direct.hold();
        let request = format!("kill-{}", site.bookstore.address().port());
        let pending = site.client().send("GET", "/search?q=harbour", &named(&request), "");
        let connection = wait_for(|| direct.running(&request).pop().ok_or(format!("{database:?}")));
        direct.execute(&match database {
            crate::databases::Database::Postgres(_) => {
                format!("select pg_terminate_backend({connection})")
            }
            _ => format!("KILL {connection}"),
        });
        // A read whose connection was found broken is retried once, on another connection.
        let again = wait_for(|| {
            let other = |one: &i64| *one != connection;
            direct.running(&request).into_iter().find(other).ok_or(format!("{database:?}"))
        });
        direct.cancel(again);
        assert_eq!(pending.reply().status, 503, "{database:?}");
        direct.release();
        assert_eq!(site.client().get("/search?q=harbour").status, 200, "{database:?}");
    });
}
