//! Tests that prepared statements are closed. A server has room for some thousands of them, shared
//! by all its clients.

use std::env;
use std::time::Duration;

use bywash_database::{DatabaseUrl, Pool, Pooled, Value};

const COUNT: &str = "SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'";

fn prepared(connection: &mut Pooled) -> i64 {
    let rows = connection.query(COUNT, &[]).expect("the server says what it has");
    let text = rows[0].text(1).expect("a number, as text");
    text.parse().expect("a number")
}

#[test]
fn a_statement_that_has_run_is_let_go_also_if_it_has_failed() {
    let Ok(address) = env::var("BYWASH_MARIADB") else {
        eprintln!("NOT TESTED: MariaDB (scripts/with-databases mariadb -- cargo test)");
        return;
    };
    let url: DatabaseUrl = format!("mysql://shop@{address}/shop").parse().expect("a URL");
    let url = url.with_password("lab").expect("it takes one");
    let pool = Pool::new(url, Duration::from_secs(20));
    let mut connection = pool.pooled();
    connection.ready(String::new()).expect("the server is there");
    let before = prepared(&mut connection);
    for number in 0..50 {
        connection.query("SELECT ? + 1", &[Value::Number(number)]).expect("it is a sum");
        connection.change("DO ?", &[Value::Number(number)]).expect("it does nothing");
        let wrong = "SELECT * FROM (SELECT 1 UNION SELECT 2) t WHERE 1 = (SELECT 1 UNION SELECT ?)";
        assert!(
            connection.query(wrong, &[Value::Number(number + 5)]).is_err(),
            "more than one row"
        );
    }
    assert_eq!(prepared(&mut connection), before);
}
